"""Which dialects a file speaks, from a sample of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import polars as pl

from forensics.dialects import _lines, prefixes
from forensics.dialects.spec import Dialect
from forensics.patterns import FEW, compiled, lazily

#: The pieces of a pattern: an escape, a class, how often the piece before it is there, any other character.
_PIECE = lazily(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+?]\??|\{\d+,?\d*\}\??|.", re.DOTALL)
_IS_CLASS, _IS_COUNT = lazily(r"\\[A-Za-z]|\[."), lazily(r"[*+?]|\{\d")
_BETWEEN = frozenset("^$.()")
#: A pattern with a character by its number, or that does not tell letters or spaces apart.
_UNSURE = lazily(r"\\[xuUNpP0-9]|\(\?[a-zA-Z]*[ix]")


def score(dialect: Dialect, sample: pl.Series) -> int:
    """How many sampled segments a pattern of `sniff` (by default of the metrics lines) fits."""
    if dialect.sniff:
        hit = sum(int(sample.str.contains(pattern).sum()) for pattern in dialect.sniff)
        if not hit:
            return 0
    else:
        hit = 0
    for line in dialect.lines:
        if line.meaning == "metrics":
            near = sample.filter(sample.str.contains(line.needle, literal=True)) if line.needle else sample
            hit += int(near.str.contains(line.pattern).sum()) if len(near) else 0
    return hit


def active(dialects: Sequence[Dialect], sample: pl.Series) -> list[Dialect]:
    """The dialects that at least one sampled segment fits, best first; ties keep their order."""
    texts: list[str] = sample.to_list()
    shapes = "\n".join(set(_lines.masked("\n".join(texts)).split("\n")))
    scored = [(_score_or_none(d, sample), d) for d in dialects if _may_fit(d, texts, shapes)]
    return [d for n, d in sorted(scored, key=lambda pair: -pair[0]) if n > 0]


def _may_fit(dialect: Dialect, texts: list[str], shapes: str) -> bool:
    """Whether a pattern of the dialect may fit one of the segments, as one has its needle.

    `shapes`: the segments with each digit as a 0, each once. Few segments are searched: what a pattern takes to compile
    in the engine that has the word costs more than that.
    """
    marks = [(needle_of(pattern), pattern) for pattern in dialect.sniff]
    records = [(line.needle, line.pattern) for line in dialect.lines if line.meaning == "metrics"]
    there = [(needle, pattern) for needle, pattern in marks or records if _may_hold(shapes, needle, pattern)]
    if len(texts) > FEW:
        return bool(there)
    near = ((pattern, text) for needle, pattern in there for text in texts if needle in text)
    try:
        return any(compiled(pattern).search(text) for pattern, text in near)
    except re.error:  # the other engine may know it
        return True


def _may_hold(shapes: str, needle: str, pattern: str) -> bool:
    return all(map(shapes.__contains__, _shapes_of(needle, pattern)))


@cache
def _shapes_of(needle: str, pattern: str) -> tuple[str, ...]:
    return tuple(map(_lines.masked, (needle, *literals_of(pattern))))


def needle_of(pattern: str) -> str:
    """Give the longest literal that all contain in which a pattern is found, or nothing."""
    return max(literals_of(pattern), key=len, default="")


@cache
def literals_of(pattern: str) -> tuple[str, ...]:
    """Give literals that all contain in which a pattern is found: those outside of its groups."""
    if _UNSURE.search(pattern):
        return ()
    runs, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if depth or piece in _BETWEEN or _IS_CLASS.match(piece):
            runs.append("")
        elif piece == "|":
            return ()
        elif _IS_COUNT.match(piece):
            runs[-1:] = [runs[-1][:-1], ""]
        else:
            runs[-1] += piece[-1]
    return tuple(filter(None, runs))


def _score_or_none(dialect: Dialect, sample: pl.Series) -> int:
    try:
        return score(dialect, sample)
    except pl.exceptions.PolarsError:  # a third party's pattern that the engine refuses must not cost the file
        return 0


def has_loss(names: Sequence[str]) -> bool:
    """Whether one of the canonical names is a training loss."""
    return any(name == "loss" or name.endswith("loss") for name in names if not name.startswith("eval"))


def sample_of(parts: Sequence[bytes]) -> pl.Series:
    """Segments of sampled bytes as printed, less ANSI sequences; the caller cuts at line ends."""
    return _lines.Cut(b"\n".join(parts)).select(None)["text"]


def bare(sample: pl.Series, *, tasks: bool, lead: prefixes.Lead | None = None) -> tuple[pl.Series, pl.Series]:
    """The segments without rank prefixes, and the rank that each prefix names."""
    found = prefixes.strip(sample.to_frame("text"), tasks=tasks, lead=lead)
    return found["text"], found["rank"]
