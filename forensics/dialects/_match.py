"""One dialect over candidate lines: matches with their reserved groups, and the metrics of each, long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from forensics.dialects import _layouts, _lines, _numbers, _times
from forensics.dialects.clocks import Calendar
from forensics.dialects.names import canonical
from forensics.dialects.spec import RESERVED, TAILS, Dialect, Line, Name
from forensics.io.columns import as_column

Ints = npt.NDArray[np.int64]
#: From lines as printed to their times in nanoseconds.
Times = Callable[[pl.Series], pl.Series]
NONE: Ints = np.zeros(0, np.int64)
_COUNTS = ("step", "epochs", "iter", "iters", "max_steps")
#: Counters that a dialect may count from 0.
_OFFSET = ("step", "iter", "iters")
_KEPT = ("seq", "line", "byte", "rank")
#: Fewer lines than this are read the general way: a layout would cost more than it saves (0.3 ms against 80 µs a line).
LEARN_FROM = 8
_MOST_LAYOUTS = 12
#: row: index of the match; raw_name as printed; value in the unit of `name`.
SCHEMA = {"row": pl.Int64(), "raw_name": pl.String(), "name": pl.String(), "value": pl.Float64()}

#: So many times a list is repeated in less time than a column is gathered.
_FEW = 100


class Batch(Struct, frozen=True):
    """Matches of one `Line`: `meta` has one row per match; `values` has columns row, raw_name, name, value.

    `claims`: no other line reads metrics of these segments.
    """

    kind: int
    meta: pl.DataFrame
    values: pl.DataFrame | None
    claims: bool = True


class How(Struct, frozen=True):
    """How lines are read: `times` knows where the stamps of these lines are, `calendar` what they leave out.

    `finite`: a line in which NaN or ±inf is printed, as where a number is missing, does not fit.
    """

    calendar: Calendar
    finite: bool = False
    times: Times | None = None


class Sample(Struct, frozen=True):
    """A line from which a layout was learned: its kind, as printed, and without its prefix."""

    kind: int
    layout: _layouts.Layout
    raw: str
    text: str


class Learned(Struct):
    """The layouts of one dialect in one file, by kind of line; `fresh` are those that nobody has looked at yet."""

    calendar: Calendar = Calendar()
    least: int = LEARN_FROM
    layouts: dict[int, list[_layouts.Layout]] = field(default_factory=dict[int, list[_layouts.Layout]])
    fresh: list[Sample] = field(default_factory=list[Sample])


def matches(dialect: Dialect, found: pl.DataFrame, learned: Learned, claimed: Ints = NONE) -> list[Batch]:
    """All matches of a dialect's lines in `found` (columns seq, line, byte, text, rank, raw).

    Of the `metrics` lines the first that fits takes the segment; the other meanings are read independently.
    `claimed`: segments whose metrics another dialect has read.
    """
    batches: list[Batch] = []
    if not found.height:
        return batches
    taken = claimed
    near = _lines.marked(found, [line.needle for line in dialect.lines])
    for kind, (line, marked) in enumerate(zip(dialect.lines, near, strict=True)):
        lines = marked
        if line.meaning == "metrics" and len(taken) and lines.height:
            lines = lines.filter(~as_column(np.isin(lines["seq"].to_numpy(), taken, kind="table")))
        if not lines.height:
            continue
        fresh = list(_batches(kind, line, lines, learned))
        batches += fresh
        if line.meaning == "metrics":
            taken = np.concatenate([taken, claims(fresh)])
    return batches


def claims(batches: list[Batch]) -> Ints:
    """Segments (`seq`) whose metrics these matches have read."""
    read = [b.meta["seq"].to_numpy() for b in batches if b.values is not None and b.claims]
    return np.concatenate(read) if read else NONE


def _batches(kind: int, line: Line, lines: pl.DataFrame, learned: Learned) -> Iterator[Batch]:
    if line.meaning == "metrics" and lines.height >= learned.least:
        layouts = learned.layouts.setdefault(kind, [])
        for layout in layouts:
            if lines.height:
                batch, lines = by_layout(kind, line, lines, layout, How(learned.calendar))
                if batch is not None:
                    yield batch
        while lines.height >= learned.least and len(layouts) < _MOST_LAYOUTS:
            layout = _layouts.learn(line, lines["text"][0])
            if layout is None:
                break
            layouts.append(layout)
            learned.fresh.append(Sample(kind, layout, lines["raw"][0], lines["text"][0]))
            batch, lines = by_layout(kind, line, lines, layout, How(learned.calendar))
            if batch is None:
                break
            yield batch
    if lines.height and (batch := _general(kind, line, lines, learned.calendar)) is not None:
        yield batch


def by_layout(
    kind: int, line: Line, lines: pl.DataFrame, layout: _layouts.Layout, how: How
) -> tuple[Batch | None, pl.DataFrame]:
    """Read the lines that fit a layout; give the others back."""
    groups = lines["text"].str.extract_groups(layout.pattern).struct.unnest()
    numbers = _numbers.floats(pl.concat(groups.get_columns()), comma=line.comma, points=line.points)
    height, width = lines.height, len(layout.names)
    values = numbers.to_numpy().reshape(width, height)
    if how.finite:
        there = np.isfinite(values)
    elif numbers.null_count():
        there = numbers.is_not_null().to_numpy().reshape(width, height)
    else:
        there = np.ones((width, height), np.bool_)
    fits: npt.NDArray[np.bool_] = np.logical_and.reduce(there, axis=0)
    if not fits.any():
        return None, lines
    rest = lines.clear()
    if not fits.all():
        mask = as_column(fits)
        rest, lines, groups = lines.filter(~mask), lines.filter(mask), groups.filter(mask)
        values = values[:, fits]
    groups.columns = list(layout.names)
    own = [n for n, tail in zip(layout.names, layout.of_tail, strict=True) if n in RESERVED and not tail]
    meta = _meta(line, lines, pl.DataFrame([groups.get_column(name) for name in own]), how)
    return Batch(kind, meta, interleaved(named(line, layout), values)), rest


def _general(kind: int, line: Line, lines: pl.DataFrame, calendar: Calendar) -> Batch | None:
    names = groups_of(line.pattern)
    if names:
        groups = lines["text"].str.extract_groups(line.pattern).struct.unnest()
        fits = groups.select(pl.any_horizontal(pl.col(n).is_not_null() for n in names)).to_series()
    else:
        groups = pl.DataFrame()
        fits = lines["text"].str.contains(line.pattern)
    if not fits.any():
        return None
    if not fits.all():
        lines, groups = lines.filter(fits), groups.filter(fits) if names else groups
    return Batch(
        kind,
        _meta(line, lines, groups, How(calendar)),
        of_groups(line, groups) if line.meaning in {"metrics", "clock"} else None,
        claims=line.meaning == "metrics",
    )


def _meta(line: Line, lines: pl.DataFrame, groups: pl.DataFrame, how: How) -> pl.DataFrame:
    columns = {name: lines[name] for name in _KEPT}
    height = lines.height
    for name in _COUNTS:
        columns[name] = (
            _numbers.integers(groups[name], points=line.points)
            if name in groups.columns
            else _nulls(height, pl.Int64())
        )
    if line.step_offset:
        columns |= {name: columns[name] + line.step_offset for name in _OFFSET if name in groups.columns}
    epoch = (
        _numbers.floats(groups["epoch"], comma=line.comma, points=line.points) if "epoch" in groups.columns else None
    )
    columns["epoch"] = _nulls(height, pl.Float64()) if epoch is None else epoch
    columns["path"] = groups["path"] if "path" in groups.columns else _nulls(height, pl.String())
    if "t" in groups.columns:
        t_ns = _times.of_groups(groups["t"], how.calendar)
    else:
        t_ns = how.times(lines["raw"]) if how.times is not None else _times.read(lines["raw"], how.calendar)
    columns["t_ns"] = how.calendar.dated(t_ns, lines["byte"])
    columns["text"] = lines["raw"] if line.meaning != "metrics" else _nulls(height, pl.String())
    if "rank" in groups.columns:
        own = _numbers.integers(groups["rank"])
        columns["rank"] = own.zip_with(own.is_not_null(), lines["rank"])
    extra = [g for g in groups.columns if g not in RESERVED] if line.meaning != "metrics" else []
    columns["said"] = (
        groups.select(pl.struct(extra).struct.json_encode()).to_series() if extra else _nulls(height, pl.String())
    )
    return pl.DataFrame([column.rename(name) for name, column in columns.items()])


def _nulls(height: int, dtype: pl.DataType) -> pl.Series:
    return _null(dtype).new_from_index(0, height)


@cache
def _null(dtype: pl.DataType) -> pl.Series:
    return pl.Series([None], dtype=dtype)


# The metrics of matched lines, long: one row per printed number, with its canonical name and unit.


@cache
def groups_of(pattern: str) -> tuple[str, ...]:
    """Named groups of a pattern, in order."""
    return tuple(re.compile(pattern).groupindex)


def named(line: Line, layout: _layouts.Layout) -> list[tuple[int, str, Name]]:
    """Column, printed name and meaning of each metric of a layout: groups as in the pattern, then keys as printed."""
    order = groups_of(line.pattern)
    columns = [
        (i, name, tail, known)
        for i, (name, tail) in enumerate(zip(layout.names, layout.of_tail, strict=True))
        if name not in RESERVED and (known := _name(line, name)) is not None
    ]
    columns.sort(key=lambda c: (c[2], c[0] if c[2] else order.index(c[1])))
    taken = {known.canonical for _, _, tail, known in columns if not tail}
    return [(i, n, known) for i, n, tail, known in columns if not tail or known.canonical not in taken]


def interleaved(columns: list[tuple[int, str, Name]], values: npt.NDArray[np.float64]) -> pl.DataFrame:
    """Lay out columns (index into `values`, printed name, meaning) of a width x height table row by row."""
    height, width = values.shape[1], len(columns)
    if not width:
        return pl.DataFrame(schema=SCHEMA)
    scale = np.array([known.scale for _, _, known in columns])
    return pl.DataFrame(
        [
            as_column(np.repeat(np.arange(height, dtype=np.int64), width), "row"),
            _again([name for _, name, _ in columns], height).rename("raw_name"),
            _again([known.canonical for _, _, known in columns], height).rename("name"),
            as_column((values[[i for i, _, _ in columns]] * scale[:, None]).T.ravel(), "value"),
        ]
    )


def _again(texts: list[str], times: int) -> pl.Series:
    """The texts one after another, so many times over."""
    if times <= _FEW:
        return pl.Series(texts * times, dtype=pl.String)
    return pl.Series(texts)[as_column(np.tile(np.arange(len(texts), dtype=np.uint32), times))]


def _name(line: Line, printed: str) -> Name | None:
    return line.names[printed] if printed in line.names else canonical(printed)


def of_groups(line: Line, groups: pl.DataFrame) -> pl.DataFrame:
    """Long metrics of a batch: the pattern's own groups, then the tail's pairs; columns row, raw_name, name, value."""
    own = [(i, g, n) for i, g in enumerate(groups.columns) if g not in RESERVED and (n := _name(line, g)) is not None]
    parts: list[pl.DataFrame] = []
    if own:
        read = [_numbers.floats(groups[g], comma=line.comma, points=line.points) for _, g, _ in own]
        there = np.vstack([s.is_not_null().to_numpy() for s in read])
        values = np.vstack([s.fill_null(0.0).to_numpy() for s in read])
        columns = [(i, g, n) for i, (_, g, n) in enumerate(own)]
        parts.append(interleaved(columns, values).filter(as_column(there.T.ravel())))
    if line.tail and "tail" in groups.columns:
        parts.append(_pairs(line, _tail_pairs(line.tail, groups["tail"]), {n.canonical for _, _, n in own}))
    if not parts:
        return pl.DataFrame(schema=SCHEMA)
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("row", maintain_order=True)


def _tail_pairs(kind: str, tails: pl.Series) -> pl.DataFrame:
    """All pairs of all tails: columns row (index into `tails`), key, value (no number: left out); in printed order."""
    rows = tails.is_not_null().arg_true()
    whole = TAILS[kind]
    found = pl.DataFrame({"row": rows.cast(pl.Int64), "pair": tails.gather(rows).str.extract_all(whole)})
    found = found.explode("pair").drop_nulls()
    pairs = found["pair"].str.extract_groups(whole).struct.unnest()
    return pl.DataFrame(
        {"row": found["row"], "key": pairs["key"].str.strip_chars(), "value": _numbers.floats(pairs["value"])}
    )


def _pairs(line: Line, pairs: pl.DataFrame, taken: set[str]) -> pl.DataFrame:
    keys = [key for key in pairs["key"].unique().to_list() if key not in RESERVED]
    known = {key: name for key in keys if (name := _name(line, key)) is not None and name.canonical not in taken}
    pairs = pairs.filter(pl.col("key").is_in(list(known)))
    names = {key: name.canonical for key, name in known.items()}
    scales = {key: name.scale for key, name in known.items()}
    return pairs.select(
        "row",
        pl.col("key").alias("raw_name"),
        pl.col("key").replace_strict(names, default=None, return_dtype=pl.String()).alias("name"),
        pl.col("value") * pl.col("key").replace_strict(scales, default=1.0, return_dtype=pl.Float64()),
    ).drop_nulls("value")
