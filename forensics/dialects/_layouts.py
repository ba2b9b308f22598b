"""Direct patterns learned from a file: one for all lines that differ from a sample line only in their numbers.

A trainer prints its metric line thousands of times with the same words. The dialect's own pattern reads one of them;
from the places of its groups a pattern is made that the regex engine never has to choose in (a value's characters
exclude the one that follows it), which runs four times as fast and reads head and tail at once. A line that it does not
fit, or whose values are no numbers, goes the general way, so a layout changes speed and never the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct

from forensics.dialects import _lines
from forensics.dialects.spec import TAILS, Line, N
from forensics.patterns import lazily

_WIDEST = 64
_VALUE = "+.,0123456789aefintyEIN-"
_SUFFIXES = "kKMGBTP"
_NUMBER = lazily(rf"{N}[kKMGBTPE]?")
_NEXT_WORD = lazily(r"[^0-9A-Za-z]*[A-Za-z_]*")
_RUNS = lazily(r"(?P<digits>[0-9]+)|(?P<blanks> +)|(?P<other>[^0-9 ]+)")


class Layout(Struct, frozen=True):
    """An anchored pattern whose groups are, in order, `names`; `of_tail` tells keys of the tail from groups."""

    pattern: str
    names: tuple[str, ...]
    of_tail: tuple[bool, ...]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def learn(line: Line, text: str) -> Layout | None:
    """Make the layout of one segment; None when the line does not fit or its groups are not plain numbers."""
    found = _compiled(line.pattern).search(text)
    if found is None:
        return None
    places = sorted(_places(line, found))
    names = tuple(name for _, _, name, _ in places)
    apart = all(a[1] <= b[0] for a, b in pairwise(places))
    if not places or len(places) > _WIDEST or len(set(names)) != len(names) or not apart:
        return None
    if not all(_NUMBER.fullmatch(text, low, high) for low, high, _, _ in places):
        return None
    parts: list[str] = ["^"]
    at = 0
    for low, high, _, _ in places:
        parts += [_fixed(text[at:low], behind=at > 0, before=True), _value(text[low:high], text[high : high + 1])]
        at = high
    end = min(len(text), found.end())
    if None in found.groupdict().values():  # another line may hold there what this one leaves out
        word = _NEXT_WORD.match(text, end)
        end = word.end() if word is not None else end
    parts += [_fixed(text[at:end], behind=True, before=False), " *$" if end == len(text) else ""]
    return Layout("".join(parts), names, tuple(tail for _, _, _, tail in places))


def _places(line: Line, found: re.Match[str]) -> Iterator[tuple[int, int, str, bool]]:
    for name, text in found.groupdict().items():
        if text is None:
            continue
        low, high = found.span(name)
        if name != "tail" or line.tail is None:
            yield low, high, name, False
            continue
        for pair in _compiled(TAILS[line.tail]).finditer(text):
            begin, end = pair.span("value")
            yield low + begin, low + end, pair["key"].strip(), True


def _fixed(text: str, *, behind: bool, before: bool) -> str:
    """Text between values: digits may change, blanks may grow and shrink, the rest is literal.

    One blank must stay `behind` a value, as the letters that follow might be the value's as well, and between digits
    and others, which may be those of a value that the text is `before`: where the engine has to choose it takes twice
    as long.
    """
    runs = [(run.lastgroup, run[0]) for run in _RUNS.finditer(text)]
    kinds = ["digits" if behind else None, *(kind for kind, _ in runs), "digits" if before else None]
    parts: list[str] = []
    for (earlier, kind, later), (_, run) in zip(zip(kinds, kinds[1:], kinds[2:], strict=False), runs, strict=True):
        if kind == "blanks":
            parts.append(" +" if earlier == "digits" and (later == "digits" or not parts) else " *")
        else:
            parts.append("[0-9]+" if kind == "digits" else _lines.literal(run))
    return "".join(parts)


def _value(printed: str, following: str) -> str:
    if following and following in printed:
        return f"({N}[kKMGBTPE]?)"
    suffixes = _SUFFIXES if printed[-1] in _SUFFIXES else ""
    return "([" + "".join(c for c in suffixes + _VALUE if c != following) + "]+)"
