"""Events of a trace that have no duration of their own: begins and ends to be joined, memory, counters; all counted."""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, cast

import polars as pl
from msgspec import Struct, field

from forensics.dialects.names import canonical
from forensics.formats.trace._event import Args, Event
from forensics.formats.trace._rows import Coded, integers, picked
from forensics.formats.trace._times import Ints
from forensics.io.columns import owned

GIB = 1 << 30
#: Totals that the allocator of the framework states with each allocation.
_TOTALS = {"allocated": "Total Allocated", "reserved": "Total Reserved", "moved": "Bytes"}
_place = attrgetter("device_type", "device_id")
_MOST_OPEN = 100_000
_MOST_KINDS = 1_000
_CPU = 0
#: A stamp before 2001 counts on a clock of its own and is no time of day.
_UNIX_FROM_NS = 10**18
#: Durations, counters, names for a viewer, flows, instants and asynchronous events.
_KNOWN = frozenset("XBECMstfiIRbne")


class Marks(Struct):
    """What was met in one trace: `left` counts events that became no rows, by (ph, category)."""

    left: Tally[tuple[str, str]] = field(default_factory=Tally[tuple[str, str]])
    unmatched: int = 0
    _open: dict[tuple[Any, Any], list[tuple[int, Event]]] = field(
        default_factory=dict[tuple[Any, Any], list[tuple[int, Event]]]
    )
    _waiting: int = 0

    def joined(
        self, events: Sequence[Event], start_ns: Sequence[int], known: Sequence[bool]
    ) -> Iterator[tuple[int, int, Event, Event]]:
        """Take begins and ends in order; give what closes: position of the end, start of the begin, begin, end."""
        for at, (one, start, has_time) in enumerate(zip(events, start_ns, known, strict=True)):
            stack = self._open.setdefault((one.pid, one.tid), [])
            if one.ph == "B" and has_time and self._waiting < _MOST_OPEN:
                stack.append((start, one))
                self._waiting += 1
            elif one.ph == "E" and has_time and stack:
                self._waiting -= 1
                begun, begin = stack.pop()
                yield at, begun, begin, one
            else:
                self.leave(one.ph, one.cat)
                self.unmatched += 1

    def leave(self, ph: str, cat: str, count: int = 1) -> None:
        """Count events that give no row."""
        key = (ph[:20], cat[:60])
        self.left[key if key in self.left or len(self.left) < _MOST_KINDS else ("other", "")] += count

    def unknown(self) -> dict[tuple[str, str], int]:
        """What was left of kinds that no writer is known to use."""
        return {key: count for key, count in self.left.items() if key[0] not in _KNOWN}

    def close(self) -> int:
        """Count the begins that never ended, as in the trace of a job that was killed."""
        never = [one for stack in self._open.values() for _, one in stack]
        for one in never:
            self.leave("B", one.cat)
        return len(never)


def duration_of(begin: Event, end: Event) -> Event:
    """One event in the place of a begin and its end."""
    return Event("X", begin.name or end.name, begin.cat or end.cat, begin.pid, begin.tid, args=begin.args or end.args)


def has_memory(args: Args) -> bool:
    """Whether an instant states what an allocator holds."""
    return args.allocated is not None or args.reserved is not None or args.moved is not None


def memory_rows(args: Sequence[Args], seq: Ints, start_ns: Ints, rank: int | None) -> pl.DataFrame:
    """Rows of `metrics`: GiB allocated and reserved on each device; what one allocation moved only without totals."""
    places = Coded.of(map(_place, args))
    place = picked(pl.Series([_device(one) for one in places.keys], dtype=pl.String), places.rows)
    base = pl.DataFrame({"seq": owned(seq), "t_ns": owned(start_ns), "place": place})
    kind = pl.when(pl.col("place") == "cpu").then(pl.lit("cpu")).otherwise(pl.lit("gpu"))
    values = {name: integers([getattr(one, name) for one in args]) for name in _TOTALS}
    values["moved"] = values["moved"].set(values["allocated"].is_not_null(), None)
    parts = [
        base.select(
            "seq",
            "t_ns",
            name=kind + f"_mem_{name}_gib",
            raw_name=pl.col("place") + f".{printed}",
            value=pl.lit(values[name]).cast(pl.Float64) / GIB,
        ).drop_nulls("value")
        for name, printed in _TOTALS.items()
        if values[name].null_count() < len(args)
    ]
    return _metrics(pl.concat(parts or [base.select("seq", "t_ns").clear()]).sort("seq", maintain_order=True), rank)


def counter_rows(
    events: Sequence[Event], series: Sequence[object], seq: Ints, start_ns: Ints, rank: int | None
) -> pl.DataFrame:
    """Rows of `metrics` for each number of each counter; what is no number is left out."""
    rows: list[tuple[int, int, str, str, float]] = []
    for at, (one, args) in enumerate(zip(events, series, strict=True)):
        device = f"gpu.{one.pid}." if "gpu" in one.cat.lower() else ""
        for key, value in cast("dict[str, Any]", args).items() if isinstance(args, dict) else ():
            number = _float(value)
            if number is None or math.isinf(number):
                continue
            raw = f"{device}{one.name}.{key}"[:200]
            name = canonical(raw)
            rows.append((int(seq[at]), int(start_ns[at]), name.canonical, raw, number * name.scale))
    columns = {"seq": pl.Int64, "t_ns": pl.Int64, "name": pl.String, "raw_name": pl.String, "value": pl.Float64}
    return _metrics(pl.DataFrame(rows, schema=columns, orient="row"), rank)


def _float(value: object) -> float | None:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _metrics(frame: pl.DataFrame, rank: int | None) -> pl.DataFrame:
    return frame.with_columns(
        rank=pl.lit(rank, dtype=pl.Int32),
        attempt=pl.lit(0, dtype=pl.Int32),
        t_ns=pl.when(pl.col("t_ns") >= _UNIX_FROM_NS).then("t_ns"),
    )


def _device(place: tuple[object, object]) -> str:
    return "cpu" if place[0] == _CPU else f"gpu.{str(place[1])[:6]}"
