"""Leaves of a JSON document, a Python `repr` or a call such as `Namespace(a=1)`, with dotted paths and offsets.

One tolerant walk for all three, without recursion: nothing is evaluated. The part before damage is given; whether the
outermost bracket was closed, and where, is known at the end.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from msgspec import Struct, field

from forensics.patterns import lazily

_TOKEN = lazily(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|(?P<call>[A-Za-z_][\w.]*+\()|[{}\[\]():,=]|<[^<>\n]{0,200}>"
    r"|[^\s{}\[\]():,='\"]+",
    re.DOTALL,
)
_OPEN, _CLOSE = "{[(", "}])"
_DEPTH = 60
_NUMBER = lazily(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")
_WORDS = {
    "None": None,
    "null": None,
    "True": True,
    "False": False,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "nan": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "inf": float("inf"),
    "-inf": float("-inf"),
}
_ESCAPES = lazily(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8}))|(.))",
    re.DOTALL,
)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

Scalar = str | float | bool | None


class Leaf(Struct, frozen=True):
    """One scalar: its dotted path, its value, and the offset of its key (or of itself) in the text."""

    path: str
    value: Scalar
    at: int


class Walk(Struct):
    """The state of a walk; `end` is the offset behind the outermost closing bracket, -1 while it is open."""

    end: int = -1
    last: int = 0
    levels: list[_Level] = field(default_factory=list["_Level"])


class _Level(Struct):
    """An open bracket; its path is joined when its first leaf comes: most brackets of a hostile text have none."""

    above: tuple[_Level, str] | None
    is_list: bool
    _path: str | None = None
    index: int = 0
    words: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    key: str | None = None
    key_at: int = 0
    used: bool = False

    @property
    def path(self) -> str:
        if self._path is None:
            self._path = "" if self.above is None else f"{self.above[0].path}{self.above[1]}."
        return self._path


def leaves(text: str, at: int, walk: Walk) -> Iterator[Leaf]:
    """Scalars from the bracket at `at` (or the name before it) on, until that bracket is closed or the text ends."""
    for token in _TOKEN.finditer(text, at):
        word = token.group()
        first, levels = word[0], walk.levels
        if not levels and not (word in _OPEN or token["call"]):
            return
        if word in _OPEN or token["call"]:
            if len(levels) >= _DEPTH:
                return
            levels.append(_open(levels, word))
        elif word in _CLOSE:
            yield from _settled(levels[-1])
            levels.pop()
            if not levels:
                walk.end = walk.last = token.end()
                return
        elif word == ",":
            yield from _settled(levels[-1])
        elif word in ":=" and levels[-1].key is None and levels[-1].words:
            level = levels[-1]
            level.key, level.key_at = scalar_text(level.words[-1][0]), level.words[-1][1]
            level.is_list = False
            level.words.clear()
        elif first not in ":=":
            levels[-1].words.append((word, token.start()))
        walk.last = token.end()


def _open(levels: list[_Level], word: str) -> _Level:
    if not levels:
        return _Level(None, word == "[")
    above = levels[-1]
    above.used, above.words = True, []
    return _Level((above, _name(above)), word in "[(")


def _name(level: _Level) -> str:
    return level.key if level.key is not None else str(level.index)


def _settled(level: _Level) -> Iterator[Leaf]:
    """End one item of a level: its leaf, where it has a value that is no bracket."""
    if level.words and not level.used and (level.key is not None or level.is_list):
        text = " ".join(word for word, _ in level.words) if len(level.words) > 1 else level.words[0][0]
        yield Leaf(f"{level.path}{_name(level)}", scalar(text), level.key_at if level.key else level.words[0][1])
    if level.words or level.used:
        level.index += 1
    level.words, level.key, level.used = [], None, False


def scalar(text: str) -> Scalar:
    """Give the value that a word means in JSON or in Python; what is neither stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] in "\"'" and len(text) > 1:
        return scalar_text(text)
    if len(text) < 64 and _NUMBER.match(text):
        plain = text.replace("_", "")
        try:
            return int(plain) if plain.lstrip("+-").isascii() and plain.lstrip("+-").isdigit() else float(plain)
        except ValueError:
            return text
    return text


def scalar_text(text: str) -> str:
    """Give a word without its quotes and escapes."""
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        return text
    inner = text[1:-1]
    return _ESCAPES.sub(_unescaped, inner) if "\\" in inner else inner


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        high, low = int(found[1], 16), int(found[2], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if spelled := found[3] or found[4] or found[5]:
        code = int(spelled, 16)
        return found[0] if 0xD800 <= code < 0xE000 or code > sys.maxunicode else chr(code)
    return _PLAIN.get(found[6], found[6])
