"""The scalars of a YAML document with their dotted paths and lines, from parser events: nothing is constructed.

Tags such as `!!python/object` name the type of what was written; they are read as text. Anchors are not followed, so a
document cannot grow. The parser gives events as it goes: the part before damage is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from msgspec import Struct

from forensics.errors import InputError
from forensics.formats.rows.json_records import number
from forensics.patterns import lazily

_DEPTH = 100
_WHOLE = lazily(r"[-+]?(?:0|[1-9]\d{0,17})\Z")
#: Plain words of YAML 1.1, as nearly every trainer's parser reads them: small, with a first capital, or in capitals.
_WORDS: dict[str, float | bool | None] = {"": None, "~": None} | {
    form: value
    for words, value in (
        (("null",), None),
        (("true", "yes", "on"), True),
        (("false", "no", "off"), False),
        ((".nan",), math.nan),
        ((".inf", "+.inf"), math.inf),
        (("-.inf",), -math.inf),
    )
    for word in words
    for form in (word, word.title().replace("Nan", "NaN"), word.upper())
}
_PYTHON = "tag:yaml.org,2002:python/"

Scalar = str | float | bool | None


class Leaf(Struct, frozen=True):
    """One scalar: its dotted path, its value as JSON knows it, and its line (from 1)."""

    path: str
    value: Scalar
    line: int


class _Level(Struct):
    """An open mapping or list; `key` names the value that comes next, and is None where a key comes next."""

    path: str
    is_list: bool
    is_key: bool = False
    key: str | None = None
    index: int = 0

    def next_path(self) -> str | None:
        """Path of the value that comes next, or None where it is a key."""
        if self.is_list:
            self.index += 1
            return f"{self.path}{self.index - 1}"
        if self.key is None:
            return None
        path, self.key = f"{self.path}{self.key}", None
        return path


def leaves(text: str) -> Iterator[Leaf]:
    """Scalars in the order of the document.

    Raises `InputError` at the first place that is no YAML, after all before it was given.
    """
    yaml: Any = import_module("yaml")  # it has no types, and only a run with such a file needs it
    levels: list[_Level] = []
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            leaf = _event(type(event).__name__, event, levels)
            if leaf is not None:
                yield leaf
            if len(levels) > _DEPTH:
                raise InputError("nested too deep")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" on line {mark.line + 1}" if mark is not None else ""
        message = f"no YAML{where}"
        raise InputError(message) from error


def _event(kind: str, event: Any, levels: list[_Level]) -> Leaf | None:  # noqa: ANN401 - the parser has no types
    if kind in ("MappingStartEvent", "SequenceStartEvent"):
        above = levels[-1].next_path() if levels else ""
        path = "" if not levels else f"{'?' if above is None else above}."
        levels.append(_Level(path, kind == "SequenceStartEvent", is_key=above is None))
    elif kind in ("MappingEndEvent", "SequenceEndEvent"):
        if levels.pop().is_key and levels:
            levels[-1].key = "?"
    elif kind in ("ScalarEvent", "AliasEvent"):
        return _scalar(kind, event, levels)
    return None


def _scalar(kind: str, event: Any, levels: list[_Level]) -> Leaf | None:  # noqa: ANN401 - the parser has no types
    text = _encodable(str(event.value) if kind == "ScalarEvent" else f"*{event.anchor}")
    above = levels[-1].next_path() if levels else ""
    if above is None:
        levels[-1].key = text
        return None
    plain = kind == "ScalarEvent" and event.style is None and event.tag is None
    tag = _encodable(str(getattr(event, "tag", None) or ""))
    if tag.startswith(_PYTHON) and not text:
        text = "!!python/" + tag.removeprefix(_PYTHON)
    return Leaf(above, _value(text) if plain else text, event.start_mark.line + 1)


def _value(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.match(text):
        return int(text)
    found = number(text) if text[:1] in "+-.0123456789" else None
    return text if found is None else found


def _encodable(text: str) -> str:
    """The same text; a lone surrogate, which an escape can write, as that escape."""
    return text.encode("utf-8", "backslashreplace").decode()
