"""Duration events of a trace as rows of `spans`, column by column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.formats.trace._event import Args, Event
from forensics.formats.trace._times import Bools, Ints
from forensics.io.columns import owned
from forensics.knowledge.sizes import element_bytes
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily

#: Categories as profilers of 2021 spelled them.
_OLD = {
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "userannotation": "user_annotation",
    "gpuuserannotation": "gpu_user_annotation",
    "python": "python_function",
}
#: Categories of events on the time line of a device; their process is its number and their thread is a stream.
_ON_DEVICE = frozenset((*keys_of("work_of_a_gpu"), *keys_of("work_of_a_device"), *keys_of("mark_on_a_device")))
#: How -1 is printed by writers that take it for unsigned.
_NO_STREAM = 0xFFFFFFFF
_STREAM = lazily(r"(?:stream\s*)?(-?\d{1,18})", re.IGNORECASE)
_MOST_PAIRS = 1 << 20
_STEP = lazily(r"ProfilerStep#([0-9]{1,18})")
_NAME_CHARS = 8192
_ATTRS_CHARS = 8192
_NO_ARGS = Args()
_encode = msgspec.json.Encoder(decimal_format="number").encode_lines
#: Bytes of an element, by the name of its type as collectives print it.
_cat, _name, _pid, _tid = map(attrgetter, ("cat", "name", "pid", "tid"))
_correlation, _size, _collective = map(attrgetter, ("correlation", "bytes", "collective"))
_stream, _device = map(attrgetter, ("stream", "device"))


def category_of(printed: str) -> str:
    """The category in its newer, lower-case spelling."""
    lower = printed.lower()
    return _OLD.get(lower, lower)


def spans(
    events: Sequence[Event],
    seq: Ints,
    times: tuple[Ints, Ints, Bools],
    rank: int | None,
    texts: Callable[[Sequence[Args]], pl.Series],
) -> pl.DataFrame:
    """Rows of duration events; `times` are start, duration (ns) and whether it is known; `texts` makes the `attrs`."""
    start, duration, measured = times
    count = len(events)
    args = [one.args or _NO_ARGS for one in events]
    category, name = Coded.of(map(_cat, events)), Coded.of(map(_name, events))
    categories = [category_of(one) for one in category.keys]
    names = [one[:_NAME_CHARS] for one in name.keys]
    on_device = np.array([one in _ON_DEVICE for one in categories], np.bool_)[category.rows]
    thread, device, stream = _places(events, args, on_device)
    lengths = pl.Series(owned(duration))
    return pl.DataFrame(
        {
            "rank": pl.Series([rank], dtype=pl.Int32).new_from_index(0, count),
            "seq": owned(seq),
            "step": picked(_steps(names), name.rows),
            "device": device,
            "stream": stream,
            "thread": thread,
            "category": picked(pl.Series(categories, dtype=pl.String), category.rows),
            "name": picked(pl.Series(names, dtype=pl.String), name.rows),
            "start_ns": owned(start),
            "dur_ns": lengths if measured.all() else lengths.set(pl.Series(owned(~measured)), None),
            "correlation": integers(list(map(_correlation, args))),
            "bytes": _bytes(args),
            "attrs": texts(args),
        }
    )


def picked(known: pl.Series, rows: Any) -> pl.Series:  # noqa: ANN401 - whole numbers of any width
    """`known[rows]`, without the query that `gather` makes of it."""
    return known[pl.Series(owned(rows), dtype=pl.UInt32)] if len(known) else known.clear(len(rows))


def _steps(names: Sequence[str]) -> pl.Series:
    found = map(_STEP.match, names)
    return pl.Series([int(one[1]) if one else None for one in found], dtype=pl.Int64)


class _Codes(dict[Any, int]):
    """Numbers in the order in which keys are first asked for."""

    def __missing__(self, key: Any) -> int:  # noqa: ANN401 - any key
        number = self[key] = len(self)
        return number


class Coded(NamedTuple):
    """A column as the values that differ and, for each row, which of them it has."""

    keys: list[Any]
    rows: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, values: Iterable[Any]) -> Coded:
        """Number the values in the order in which they first occur."""
        codes = _Codes()
        rows = np.fromiter(map(codes.__getitem__, values), np.uint32)
        return cls(list(codes), rows)


def paired(first: Coded, second: Coded) -> tuple[list[tuple[Any, Any]], npt.NDArray[np.int64]]:
    """The pairs that occur, and for each row which of them it has."""
    width = len(second.keys)
    pairs = first.rows.astype(np.int64) * width + second.rows
    if len(first.keys) * width > _MOST_PAIRS:
        unique, index = np.unique(pairs, return_inverse=True)
    else:  # the same without a sort
        unique = np.flatnonzero(np.bincount(pairs))
        place = np.zeros(len(first.keys) * width, np.int64)
        place[unique] = np.arange(len(unique))
        index = place[pairs]
    return [(first.keys[at // width], second.keys[at % width]) for at in unique.tolist()], index


def integers(values: list[Any]) -> pl.Series:
    """Integers, some of them perhaps printed as text; what is no integer of 64 bits is null."""
    try:
        return pl.Series(values, dtype=pl.Int64, strict=True)
    except (TypeError, OverflowError, RuntimeError, pl.exceptions.PolarsError):  # RuntimeError: decimals of 40 digits
        return pl.Series([_number_of(value) for value in values], dtype=pl.Int64)


def _number_of(value: object) -> int | None:
    if isinstance(value, str):
        found = _STREAM.fullmatch(value.strip())
        return int(found[1]) if found else None
    if isinstance(value, float | Decimal):
        value = int(value) if abs(value) < 1e18 and value == int(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63 else None


def _places(events: Sequence[Event], args: Sequence[Args], on_device: Bools) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Thread of host events; device and stream of device events, from process and thread where no argument tells."""
    kinds, index = paired(Coded.of(map(_pid, events)), Coded.of(map(_tid, events)))
    labels = [f"{process}/{thread}"[:200] for process, thread in kinds]
    rows = np.flatnonzero(on_device)
    own = [args[at] for at in rows.tolist()]
    streams = Coded.of(_filled(list(map(_stream, own)), events, rows, _tid))
    devices = Coded.of(_filled(list(map(_device, own)), events, rows, _pid))
    numbers = [_number_of(key) for key in streams.keys]
    texts = [None if number is None else str(-1 if number == _NO_STREAM else number) for number in numbers]
    return (
        _spread(pl.Series(labels, dtype=pl.String), np.flatnonzero(~on_device), index, len(events)),
        _spread(pl.Series(map(_device_of, devices.keys), dtype=pl.Int32), rows, devices.rows, len(events), own=True),
        _spread(pl.Series(texts, dtype=pl.String), rows, streams.rows, len(events), own=True),
    )


def _filled(given: list[Any], events: Sequence[Event], rows: Ints, instead: Callable[[Event], Any]) -> list[Any]:
    """What arguments state of these rows, and what the event itself does where they do not."""
    if not any(one is None for one in given):
        return given
    places: list[int] = rows.tolist()
    return [instead(events[at]) if one is None else one for one, at in zip(given, places, strict=True)]


def _spread(known: pl.Series, rows: Ints, index: Any, count: int, *, own: bool = False) -> pl.Series:  # noqa: ANN401 - whole numbers of any width
    """A column of `count` rows that has `known[index]` in `rows`, else null; `own`: `index` is of `rows` only."""
    if len(rows) == count:
        return picked(known, index)
    full = np.full(count, len(known), np.uint32)
    full[rows] = index if own else index[rows]
    return picked(known.extend_constant(None, 1), full)


def _device_of(value: object) -> int | None:
    number = _number_of(value)
    return number if number is not None and -(1 << 31) <= number < 1 << 31 else None


def _bytes(args: Sequence[Args]) -> pl.Series:
    """Bytes, with those that a collective sends where its element count and type are printed."""
    given = list(map(_size, args))
    if any(map(_collective, args)):
        given = [
            _sent(one) if size is None and one.collective is not None else size
            for size, one in zip(given, args, strict=True)
        ]
    return integers(given)


def _sent(one: Args) -> int | None:
    count, element = _number_of(one.elements_in), element_bytes(str(one.dtype))
    return None if count is None or element is None or not 0 <= count < 1 << 59 else count * element


def attrs(args: Sequence[Args]) -> pl.Series:
    """JSON text of the arguments without columns, null where there are none."""
    for one in args:
        if one.correlation is not None or one.stream is not None or one.bytes is not None or one.device is not None:
            one.correlation = one.stream = one.device = one.bytes = None
        if one.old_external_id is not None:
            one.external_id, one.old_external_id = one.old_external_id, None
    lines = _encode(args).decode().split("\n")
    lines.pop()
    return pl.Series([one if 2 < len(one) <= _ATTRS_CHARS else None for one in lines], dtype=pl.String)
