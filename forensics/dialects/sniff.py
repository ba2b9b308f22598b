"""Which dialects a file speaks, from a sample of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

import polars as pl

from forensics.dialects import _lines, prefixes
from forensics.dialects.spec import Dialect
from forensics.patterns import compiled, lazily

#: How a named group begins; two patterns may use one name. No dialect looks for these characters themselves.
_NAMED = lazily(r"\(\?P<\w+>")

#: The pieces of a pattern: an escape, a class, how often the piece before it is there, any other character.
_PIECE = lazily(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+?]\??|\{\d+,?\d*\}\??|.", re.DOTALL)
_IS_CLASS, _IS_COUNT = lazily(r"\\[A-Za-z]|\[."), lazily(r"[*+?]|\{\d")
_BETWEEN = frozenset("^$.()")
#: A pattern with a character by its number, or that does not tell letters or spaces apart.
_UNSURE = lazily(r"\\[xuUNpP0-9]|\(\?[a-zA-Z]*[ix]")

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
    if len(sample) <= FEW:
        texts = sample.to_list()
        possible = [dialect for dialect in dialects if _may_fit(dialect, texts)]
    else:
        possible = _possible(dialects, sample)
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
    """Whether a pattern of the dialect fits one of a few segments; it is compiled where one holds its needle."""
    marks = [(needle_of(pattern), pattern) for pattern in dialect.sniff]
    records = [(line.needle, line.pattern) for line in dialect.lines if line.meaning == "metrics"]
    near = ((pattern, text) for needle, pattern in marks or records for text in texts if needle in text)
    try:
        return any(compiled(pattern).search(text) for pattern, text in near)
    except re.error:  # the other engine may know it
        return True


@cache
def needle_of(pattern: str) -> str:
    """Give a literal that all contain in which a pattern is found: its longest one outside of groups, or nothing."""
    if _UNSURE.search(pattern):
        return ""
    runs, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if depth or piece in _BETWEEN or _IS_CLASS.match(piece):
            runs.append("")
        elif piece == "|":
            return ""
        elif _IS_COUNT.match(piece):
            runs[-1:] = [runs[-1][:-1], ""]
        else:
            runs[-1] += piece[-1]
    return max(runs, key=len)


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
