"""The metrics of matched lines, long: one row per printed number, with its canonical name and unit."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.dialects import _layouts, _numbers
from forensics.dialects.names import canonical
from forensics.dialects.spec import RESERVED, TAILS, Line, Name
from forensics.io.columns import owned

#: row: index of the match; raw_name as printed; value in the unit of `name`.
SCHEMA = {"row": pl.Int64(), "raw_name": pl.String(), "name": pl.String(), "value": pl.Float64()}

#: So many times a list is repeated in less time than a column is gathered.
_FEW = 100


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
        {
            "row": owned(np.repeat(np.arange(height, dtype=np.int64), width)),
            "raw_name": _again([name for _, name, _ in columns], height),
            "name": _again([known.canonical for _, _, known in columns], height),
            "value": owned((values[[i for i, _, _ in columns]] * scale[:, None]).T.ravel()),
        }
    )


def _again(texts: list[str], times: int) -> pl.Series:
    """The texts one after another, so many times over."""
    if times <= _FEW:
        return pl.Series(texts * times, dtype=pl.String)
    return pl.Series(texts).gather(pl.Series(owned(np.tile(np.arange(len(texts), dtype=np.uint32), times))))


def _name(line: Line, printed: str) -> Name | None:
    return line.names[printed] if printed in line.names else canonical(printed)


def of_groups(line: Line, groups: pl.DataFrame) -> pl.DataFrame:
    """Long metrics of a batch: the pattern's own groups, then the tail's pairs; columns row, raw_name, name, value."""
    own = [(i, g, n) for i, g in enumerate(groups.columns) if g not in RESERVED and (n := _name(line, g)) is not None]
    parts: list[pl.DataFrame] = []
    if own:
        read = [_numbers.floats(groups[g]) for _, g, _ in own]
        there = np.vstack([s.is_not_null().to_numpy() for s in read])
        values = np.vstack([s.fill_null(0.0).to_numpy() for s in read])
        columns = [(i, g, n) for i, (_, g, n) in enumerate(own)]
        parts.append(interleaved(columns, values).filter(pl.Series(owned(there.T.ravel()))))
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
