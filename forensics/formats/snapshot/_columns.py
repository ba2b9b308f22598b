"""Events of a memory snapshot as columns: what the reader of opcodes writes, and what becomes rows of `allocs`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl

from forensics.formats.rows.out import Out
from forensics.formats.snapshot._stacks import StackBook

#: Events that are held before they become rows; 56 bytes each.
BATCH = 1 << 15
NONE = -1
_I63, _MASK = 1 << 63, (1 << 64) - 1
_TEXTS = ("action", "compile_context", "user_metadata")


class EventColumns:
    """Columns of the events that were read since the last flush, with texts and pools as numbers."""

    def __init__(self, out: Out, stacks: StackBook, batch_rows: int = BATCH) -> None:
        """Start without events; at most `batch_rows` and those of one window are held."""
        self.batch_rows = batch_rows
        self.out = out
        self.stacks = stacks
        self.seq = 0
        self.malformed: dict[str, int] = {}
        self.texts: dict[str, int] = {}
        self.pools: dict[tuple[int, int], int] = {}
        self._clear()

    def _clear(self) -> None:
        self.device, self.action, self.stack = array("i"), array("i"), array("i")
        self.compile_context, self.user_metadata, self.pool = array("i"), array("i"), array("i")
        self.addr, self.stream = array("Q"), array("Q")
        self.size, self.time, self.free = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        """Events that wait."""
        return len(self.action)

    def text(self, value: str) -> int:
        """Give the number of a text."""
        return self.texts.setdefault(value, len(self.texts))

    def pool_of(self, value: object) -> int:
        """Give the number of a pool id, a pair of integers; -1 for anything else."""
        pair = cast("Sequence[object]", value) if isinstance(value, tuple | list) else ()
        if len(pair) == 2 and isinstance(pair[0], int) and isinstance(pair[1], int) and all(map(_is_int64, pair)):
            return self.pools.setdefault((pair[0], pair[1]), len(self.pools))
        return NONE

    def add(self, event: Mapping[str, Any], device: int) -> None:
        """Add one event; one whose action, address or size is none of its kind is counted and left out."""
        action, size = event.get("action"), event.get("size")
        free = event.get("device_free")
        addr, stream = event.get("addr", 0), event.get("stream", 0)
        wrong = (
            "action" if not isinstance(action, str)
            else "size" if not _is_int64(size)
            else "addr" if not _is_address(addr)
            else "stream" if not _is_address(stream)
            else None
        )  # fmt: skip
        if wrong is not None:
            self.malformed[wrong] = self.malformed.get(wrong, 0) + 1
            return
        stack, time = self.stacks.of(event.get("frames")), event.get("time_us")
        context, metadata = event.get("compile_context"), event.get("user_metadata")
        self.device.append(device)
        self.action.append(self.text(str(action)))
        self.addr.append(addr & _MASK)
        self.size.append(size if size is not None else 0)
        self.stream.append(stream & _MASK)
        self.time.append(time if isinstance(time, int) and 0 <= time < _I63 // 1000 else NONE)
        self.free.append(free if isinstance(free, int) and 0 <= free < _I63 else NONE)
        self.stack.append(NONE if stack is None else stack)
        self.pool.append(self.pool_of(event.get("pool_id")))
        self.compile_context.append(self.text(context) if isinstance(context, str) else NONE)
        self.user_metadata.append(self.text(metadata) if isinstance(metadata, str) else NONE)
        if len(self.action) >= self.batch_rows:
            self.flush()

    def flush(self) -> None:
        """Write the waiting events to the table `allocs`."""
        count = len(self.action)
        if not count:
            return
        texts = pl.Series(list(self.texts), dtype=pl.String).cast(pl.Categorical())
        pools = list(self.pools)
        owner = pl.Series([one[0] for one in pools], dtype=pl.Int64)
        number = pl.Series([one[1] for one in pools], dtype=pl.Int64)
        pool = _known(self.pool)
        columns = {
            "seq": pl.int_range(self.seq, self.seq + count, eager=True),
            "device": pl.Series(self.device, dtype=pl.Int32),
            "t_ns": _known(self.time, pl.Int64()) * 1000,
            "addr": pl.Series(self.addr, dtype=pl.UInt64),
            "size": pl.Series(self.size, dtype=pl.Int64),
            "stream": pl.Series(self.stream, dtype=pl.UInt64),
            "stack": _known(self.stack),
            "device_free": _known(self.free, pl.Int64()),
            "pool_owner": owner.gather(pool),
            "pool": number.gather(pool),
        }
        columns |= {name: texts.gather(_known(getattr(self, name))) for name in _TEXTS}
        frame = pl.DataFrame(columns)
        ooms = pl.col("device_free").is_not_null() & (pl.col("addr") == 0)
        frame = frame.with_columns(addr=pl.when(~ooms).then(pl.col("addr")))
        self.seq += count
        self._clear()
        self.out.rows("allocs", frame)


def _known(values: array[int], dtype: pl.DataType | None = None) -> pl.Series:
    series = pl.Series(values, dtype=dtype or pl.Int32())
    return series.set(series == NONE, None)


def _is_int64(value: object) -> bool:
    return value.__class__ is int and -_I63 <= value < _I63  # type: ignore[operator]  # the class was looked at


def _is_address(value: object) -> bool:
    return value.__class__ is int and -_I63 <= value <= _MASK  # type: ignore[operator]  # the class was looked at
