"""One dialect over candidate lines: matches with their reserved groups, and the metrics of each, long."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.dialects import _numbers, _tails, _times
from forensics.dialects.names import canonical
from forensics.dialects.spec import RESERVED, Dialect, Line, Name

Ints = npt.NDArray[np.int64]
_NONE: Ints = np.zeros(0, np.int64)
_COUNTS = ("step", "epochs", "iter", "iters", "max_steps")
KEPT = ("seq", "line", "byte", "rank")


@dataclass(frozen=True, slots=True)
class Batch:
    """Matches of one `Line`: `meta` has one row per match; `values` has columns row, raw_name, name, value."""

    kind: int
    meta: pl.DataFrame
    values: pl.DataFrame | None


def groups_of(line: Line) -> tuple[str, ...]:
    """Named groups of a line's pattern, in order."""
    return tuple(re.compile(line.pattern).groupindex)


def matches(dialect: Dialect, found: pl.DataFrame, *, claimed: Ints = _NONE, year: int = 1970) -> list[Batch]:
    """All matches of a dialect's lines in `found` (columns seq, line, byte, text, rank, raw).

    Of the `metrics` lines the first that fits takes the segment; the other meanings are read independently.
    `claimed`: segments whose metrics another dialect has read; `year`: for timestamps that print none.
    """
    batches: list[Batch] = []
    taken = claimed
    for kind, line in enumerate(dialect.lines):
        lines = found.filter(pl.col("text").str.contains(line.needle, literal=True)) if line.needle else found
        if line.meaning == "metrics" and len(taken) and lines.height:
            lines = lines.filter(~pl.Series(np.isin(lines["seq"].to_numpy(), taken)))
        if lines.height and (batch := _batch(kind, line, lines, year)) is not None:
            batches.append(batch)
            if line.meaning == "metrics":
                taken = np.concatenate([taken, batch.meta["seq"].to_numpy()])
    return batches


def _batch(kind: int, line: Line, lines: pl.DataFrame, year: int) -> Batch | None:
    names = groups_of(line)
    if names:
        groups = lines["text"].str.extract_groups(line.pattern).struct.unnest()
        fits = groups.select(pl.any_horizontal(pl.col(n).is_not_null() for n in names)).to_series()
    else:
        fits = lines["text"].str.contains(line.pattern)
        groups = pl.DataFrame(height=lines.height)
    if not fits.any():
        return None
    if not fits.all():
        lines, groups = lines.filter(fits), groups.filter(fits) if names else groups
    meta = _meta(line, lines, groups, year)
    return Batch(kind, meta, _values(line, groups) if line.meaning == "metrics" else None)


def _meta(line: Line, lines: pl.DataFrame, groups: pl.DataFrame, year: int) -> pl.DataFrame:
    columns = {name: lines[name] for name in KEPT}
    height = lines.height
    for name in _COUNTS:
        columns[name] = _numbers.integers(groups[name]) if name in groups.columns else _nulls(height, pl.Int64())
    if line.step_offset and "step" in groups.columns:
        columns["step"] = columns["step"] + line.step_offset
    columns["epoch"] = _numbers.floats(groups["epoch"]) if "epoch" in groups.columns else _nulls(height, pl.Float64())
    columns["path"] = groups["path"] if "path" in groups.columns else _nulls(height, pl.String())
    columns["t_ns"] = _times.of_groups(groups["t"], year) if "t" in groups.columns else _times.read(lines["raw"], year)
    columns["text"] = lines["raw"] if line.meaning != "metrics" else _nulls(height, pl.String())
    if "rank" in groups.columns:
        own = _numbers.integers(groups["rank"])
        columns["rank"] = own.zip_with(own.is_not_null(), lines["rank"])
    extra = [g for g in groups.columns if g not in RESERVED] if line.meaning != "metrics" else []
    columns["said"] = (
        groups.select(pl.struct(extra).struct.json_encode()).to_series() if extra else _nulls(height, pl.String())
    )
    return pl.DataFrame(columns)


def _nulls(height: int, dtype: pl.DataType) -> pl.Series:
    return pl.Series([None], dtype=dtype).new_from_index(0, height)


def _name(line: Line, printed: str) -> Name | None:
    return line.names[printed] if printed in line.names else canonical(printed)


def _values(line: Line, groups: pl.DataFrame) -> pl.DataFrame:
    """Long metrics of a batch: the pattern's own groups, then the tail's pairs; columns row, raw_name, name, value."""
    own = [(g, n) for g in groups.columns if g not in RESERVED and (n := _name(line, g)) is not None]
    parts = [_wide(own, groups)] if own else []
    if line.tail and "tail" in groups.columns:
        parts.append(_pairs(line, _tails.read(line.tail, groups["tail"]), tuple(n.canonical for _, n in own)))
    if not parts:
        return pl.DataFrame(schema={"row": pl.Int64, "raw_name": pl.String, "name": pl.String, "value": pl.Float64})
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("row", maintain_order=True)


def _wide(own: list[tuple[str, Name]], groups: pl.DataFrame) -> pl.DataFrame:
    height, width = groups.height, len(own)
    columns = [_numbers.floats(groups[g]) * n.scale if n.scale != 1 else _numbers.floats(groups[g]) for g, n in own]
    value = pl.DataFrame({str(i): c for i, c in enumerate(columns)})
    printed = groups.select(g for g, _ in own)
    index = pl.Series(np.tile(np.arange(width, dtype=np.uint32), height))
    stacked = pl.Series(value.fill_null(0.0).to_numpy().ravel())
    frame = pl.DataFrame(
        {
            "row": np.repeat(np.arange(height, dtype=np.int64), width),
            "raw_name": pl.Series([g for g, _ in own]).gather(index),
            "name": pl.Series([n.canonical for _, n in own]).gather(index),
            "value": stacked,
        }
    )
    if not any(c.null_count() for c in printed.get_columns()) and not any(c.null_count() for c in columns):
        return frame
    there = np.column_stack([c.is_not_null().to_numpy() for c in columns]).ravel()
    return frame.filter(pl.Series(there))


def _pairs(line: Line, pairs: pl.DataFrame, taken: tuple[str, ...]) -> pl.DataFrame:
    keys = pairs["key"].unique().to_list()
    known = {key: name for key in keys if (name := _name(line, key)) is not None and name.canonical not in taken}
    pairs = pairs.filter(pl.col("key").is_in(list(known)) & ~pl.col("key").is_in(list(RESERVED)))
    scales = {k: n.scale for k, n in known.items()}
    value = pairs["value"] * pairs["key"].replace_strict(
        scales, default=1.0, return_dtype=pl.Float64
    )
    return pl.DataFrame(
        {
            "row": pairs["row"],
            "raw_name": pairs["key"],
            "name": pairs["key"].replace_strict(
                {k: n.canonical for k, n in known.items()}, default=None, return_dtype=pl.String
            ),
            "value": value,
        }
    ).drop_nulls("value")


def claims(batches: list[Batch]) -> Ints:
    """Segments (`seq`) whose metrics these matches have read."""
    read = [b.meta["seq"].to_numpy() for b in batches if b.values is not None]
    return np.concatenate(read) if read else _NONE
