"""Which dialects a file speaks, from a sample of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

import polars as pl

from forensics.dialects import _lines, prefixes
from forensics.dialects.spec import Dialect
from forensics.patterns import lazily

#: How a named group begins; two patterns may use one name. No dialect looks for these characters themselves.
_NAMED = lazily(r"\(\?P<\w+>")

#: So many segments are searched one by one in less time than a query takes.
FEW = 200


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
    possible = _possible(dialects, sample)
    if len(sample) <= FEW:
        texts = sample.to_list()
        possible = [dialect for dialect in possible if _may_fit(dialect, texts)]
    scored = [(_score_or_none(d, sample), d) for d in possible]
    return [d for n, d in sorted(scored, key=lambda pair: -pair[0]) if n > 0]


def _possible(dialects: Sequence[Dialect], sample: pl.Series) -> list[Dialect]:
    """The dialects that may fit: a needle of theirs is in the sample, or a pattern of `sniff` fits; one query for all.

    A run of a thousand ranks leaves thousands of small logs, and a query for each dialect and file takes minutes.
    """
    patterns = tuple(dict.fromkeys(pattern for dialect in dialects for pattern in dialect.sniff))
    try:
        near = sample.filter(sample.str.contains(_either(patterns))) if patterns else sample.clear()
        tests = (pl.col("text").str.contains(pattern).any().alias(pattern) for pattern in patterns)
        hits = near.to_frame("text").select_seq(tests).row(0) if len(near) else ()
    except pl.exceptions.PolarsError:
        return list(dialects)
    fits = {pattern for pattern, hit in zip(patterns, hits, strict=False) if hit}
    text = "\n".join(sample.drop_nulls().to_list())
    return [d for d in dialects if (fits & set(d.sniff) if d.sniff else _has_needle(d, text))]


@lru_cache(maxsize=8)
def _either(patterns: tuple[str, ...]) -> str:
    """One pattern that fits wherever any of them does: most logs are no known trainer's, and one answer is enough."""
    return "|".join(f"(?:{_NAMED.sub('(?:', pattern)})" for pattern in patterns)


def _has_needle(dialect: Dialect, text: str) -> bool:
    return any(line.meaning == "metrics" and line.needle in text for line in dialect.lines)


def _may_fit(dialect: Dialect, texts: list[str]) -> bool:
    """Whether a pattern of the dialect fits one of a few segments: most of its needles are words of any log."""
    marks = [("", pattern) for pattern in dialect.sniff]
    records = [(line.needle, line.pattern) for line in dialect.lines if line.meaning == "metrics"]
    try:
        tests = [(needle, _compiled(pattern)) for needle, pattern in marks or records]
    except re.error:  # the other engine may know it
        return True
    return any(test.search(text) for needle, test in tests for text in texts if needle in text)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


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


def bare(sample: pl.Series, *, tasks: bool) -> tuple[pl.Series, pl.Series]:
    """The segments without rank prefixes, and the rank that each prefix names."""
    found = prefixes.strip(sample.to_frame("text"), tasks=tasks)
    return found["text"], found["rank"]
