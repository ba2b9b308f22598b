"""Metrics lines read as they stand in the file, prefix and all, once their layout is known.

The general way takes prefixes off, asks every line of every dialect and looks for timestamps. A line that fits a layout
*with* its prefix, whose values are all finite, and in which no other meaning can stand, needs none of that. What does
not fit goes the general way, so this too changes speed and never the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from forensics.dialects import _lines, _times, prefixes
from forensics.dialects._layouts import Layout
from forensics.dialects._match import Batch, How, Sample, by_layout
from forensics.dialects.events import signatures
from forensics.dialects.spec import Dialect, Line

_DIGITS = re.compile(r"[0-9]+")
_MASK = "0"
_RANK = "([0-9]{1,5})"


@dataclass(frozen=True, slots=True)
class Direct:
    """A layout that begins at the line's begin.

    `plain`: it has no prefix but begins as one may, so a line that has one is not its own. `quiet`: no error signature
    can stand in it.
    """

    kind: int
    line: Line
    layout: Layout
    plain: bool
    quiet: bool
    how: How


def learn(dialects: Sequence[Dialect], line: Line, sample: Sample, year: int) -> Direct | None:
    """Put the prefix of the sample before its layout; None where a line like it could mean something else besides."""
    if not sample.raw.endswith(sample.text) or "rank" in sample.layout.names:
        return None
    masked = _masked(sample.text)
    others = (other for d in dialects for other in d.lines if other.meaning != "metrics")
    if any(_masked(other.needle) in masked for other in others):
        return None
    prefix = sample.raw[: len(sample.raw) - len(sample.text)]
    if prefixes.split(sample.raw)[0] != prefix:
        return None
    low, high = prefixes.rank_span(sample.raw)
    names, of_tail = sample.layout.names, sample.layout.of_tail
    if high:
        before = _exact(prefix[:low]) + _RANK + _exact(prefix[high:])
        names, of_tail = ("rank", *names), (False, *of_tail)
    else:
        before = _exact(prefix)
    layout = Layout("^" + before + sample.layout.pattern.removeprefix("^"), names, of_tail)
    masked = _masked(sample.raw)
    quiet = not any(_masked(stem) in masked for stem in signatures.literals())
    how = How(year, finite=True, times=_times.reader_like(sample.raw, year))
    word_first = not sample.layout.pattern.startswith("^(") and prefixes.MAY_BEGIN.match(sample.text) is None
    plain = not prefix and not word_first
    return Direct(sample.kind, line, layout, plain, quiet, how)


def read(direct: Direct, found: pl.DataFrame) -> tuple[Batch | None, pl.DataFrame]:
    """Read the segments (columns seq, line, byte, text) that fit; give the others back."""
    lines, other = found, None
    if direct.plain and (prefixed := found["text"].str.contains(prefixes.MAYBE)).any():
        lines, other = found.filter(~prefixed), found.filter(prefixed)
    no_rank = pl.Series("rank", [None], dtype=pl.Int64).new_from_index(0, lines.height)
    lines = lines.hstack([lines["text"].alias("raw"), no_rank])
    batch, rest = by_layout(direct.kind, direct.line, lines, direct.layout, direct.how)
    rest = rest[found.columns]
    return batch, rest if other is None else pl.concat([rest, other]).sort("seq")


@lru_cache(maxsize=4096)
def _masked(text: str) -> str:
    return _DIGITS.sub(_MASK, text)


def _exact(text: str) -> str:
    """Literal text in which each digit may be another one."""
    return "".join(f"[0-9]{{{len(run)}}}" if run.isdigit() else _lines.literal(run) for run in _runs(text))


def _runs(text: str) -> list[str]:
    return re.findall(r"[0-9]+|[^0-9]+", text)
