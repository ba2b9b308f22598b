"""The points of a run as an export sees them: chosen by name, tagged, split into series, each with a step."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from math import inf, nextafter

import polars as pl
from msgspec import Struct

from forensics.case.steps import WRITER
from forensics.dialects.names import canonical
from forensics.export.target import Selection
from forensics.io.safe_text import printable
from forensics.patterns import lazily
from forensics.report.phrases import plural
from forensics.store.run import Run

#: Points of different files, attempts or ranks are never drawn as one curve.
_ORDER = (*WRITER, "seq")
_LAST_STEP = 1 << 62
_STEM_CHARS = 80
_HASH_DIGITS = 8
_CODE = lazily(r"-?\d{1,9}")
_NOT_IN_A_NAME = lazily(r"[^A-Za-z0-9._=+@-]+|^[.-]+|^$")


class Series(Struct, frozen=True):
    """The points of one attempt of one rank in one source; `stem` names the source in a path, `several` attempts."""

    source: str
    attempt: int
    rank: int | None
    stem: str
    several: bool
    points: pl.DataFrame

    @property
    def parts(self) -> tuple[str, ...]:
        """Path of the series below the place of an export; ingesting it again gives the same rank and attempt."""
        rank = () if self.rank is None else (f"rank_{self.rank}",)
        return (self.stem, *rank, *((f"attempt_{self.attempt}",) if self.several else ()))


def select(run: Run, globs: Sequence[str] = (), *, wide: bool = False) -> Selection:
    """Choose the points whose name, canonical or as printed, fits one of `globs` (all without any)."""
    points = run.scan("metrics").sort(_ORDER, maintain_order=True, nulls_last=False).collect()
    if globs:
        points = points.filter(_fits("name", points, globs) | _fits("raw_name", points, globs))
    facts = run.collect("facts")
    exits = facts.filter(pl.col("family") == "exit", pl.col("key") == "exit_code")
    config = facts.filter(pl.col("family") == "config", pl.col("key").is_not_null(), pl.col("value").is_not_null())
    codes = exits.select("source", "value").iter_rows()
    return Selection(
        run.name,
        points,
        wide,
        {source: int(code) for source, code in codes if _CODE.fullmatch(code or "")},
        dict(config.unique("key", keep="first", maintain_order=True).select("key", "value").iter_rows()),
    )


def _fits(column: str, points: pl.DataFrame, globs: Sequence[str]) -> pl.Expr:
    known = points[column].drop_nulls().unique().to_list()
    return pl.col(column).is_in([name for name in known if any(fnmatchcase(name, glob) for glob in globs)])


def tagged(points: pl.DataFrame) -> pl.DataFrame:
    """Add `tag`: the printed name where reading it again gives the same quantity in the same unit, else the canonical.

    Values are in the unit of the canonical name, so a printed `time (ms)` would be wrong beside a number of seconds.
    """
    pairs = points.select("name", "raw_name").unique(maintain_order=True)
    tags = [_tag(name or "", raw) for name, raw in pairs.iter_rows()]
    tag = pl.Series("tag", tags, dtype=pl.String())
    return points.join(
        pairs.with_columns(tag), on=["name", "raw_name"], how="left", nulls_equal=True, maintain_order="left"
    )


def _tag(name: str, raw: str | None) -> str:
    if not raw:
        return name
    known = canonical(raw)
    return raw if known.scale == 1 and known.canonical == name else name


def series_of(points: pl.DataFrame) -> Iterator[Series]:
    """Split points by source, attempt and rank, in that order, each with a name that is safe and its own."""
    stems = _stems(points["source"].unique(maintain_order=True).to_list())
    attempts = dict(points.group_by("source").agg(pl.col("attempt").max()).iter_rows())
    for (source, attempt, rank), part in points.partition_by(WRITER, as_dict=True, maintain_order=True).items():
        several = bool(attempts[source])
        yield Series(str(source), int(attempt or 0), None if rank is None else int(rank), stems[source], several, part)


def numbered(points: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Give every point of a series a step, its own or the order of its record behind the last; count those without."""
    missing = points["step"].null_count()
    if not missing:
        return points, 0
    last = points["step"].drop_nulls().to_list()
    start = max((step + 1 for step in last if step < _LAST_STEP), default=0)
    order = pl.col("seq").rank("dense").cast(pl.Int64) - 1 + start
    without = points.filter(pl.col("step").is_null()).with_columns(step=order)
    return pl.concat([points.filter(pl.col("step").is_not_null()), without]), missing


def unstepped_note(count: int) -> str:
    """Say which steps are ours."""
    return f"{plural(count, 'point')} without a step, numbered in the order of the records"


def _stems(sources: Sequence[str]) -> dict[str, str]:
    """A path component for each source: no separators, no leading dot, never two alike (in any case of letters)."""
    plain = {source: source.replace("/", "-") for source in sources}
    counts = Counter(stem.casefold() for stem in plain.values())
    return {source: _stem(source, stem, alone=counts[stem.casefold()] == 1) for source, stem in plain.items()}


def _stem(source: str, plain: str, *, alone: bool) -> str:
    safe = _NOT_IN_A_NAME.sub("_", plain)[:_STEM_CHARS]
    if safe == plain and alone:
        return safe
    return f"{safe}.{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_DIGITS]}"


def seconds(t_ns: int | None) -> float:
    """Unix seconds as a float that rounds to `t_ns` nanoseconds again where a float can; 0.0 for no time."""
    if t_ns is None:
        return 0.0
    near = t_ns / 1e9
    same = [s for s in (near, nextafter(near, 0.0), nextafter(near, inf)) if round(s * 1e9) == t_ns]
    return min(same, key=lambda s: len(repr(s)), default=near)  # a writer's 0.25 comes back as 0.25


def title(series: Series) -> str:
    """A name for people, on one line and printable."""
    rank = "" if series.rank is None else f" rank {series.rank}"
    return printable(series.source) + rank + (f" attempt {series.attempt}" if series.several else "")
