"""JSON, YAML and TOML documents as settings: dotted key, value, line; the part before damage is kept."""

from __future__ import annotations

import re
import tomllib
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import cast

from msgspec import Struct

from forensics.dialects.settings import literal
from forensics.errors import InputError, NotMine
from forensics.formats.configs import yaml_leaves as yaml
from forensics.io.budget import Budget, WorkExceeded
from forensics.patterns import lazily

#: The YAML parser takes up to a second for 48 KB of a damaged document; TOML's is quadratic in the parts of a key.
_YAML_BYTES, _TOML_BYTES = 96 << 10, 256 << 10
_SETTINGS = 20_000
_TABLE = lazily(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$")
_ASSIGN = lazily(r"^\s*([\w.\"' -]+?)\s*=")
_TOML_DEPTH = 50
_PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?)"""
_DOT = r"[ \t]*+\.[ \t]*+"
#: A key of more parts than are kept, or what else begins here: longer texts and comments hold no keys.
_DEEP_KEY = lazily(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"{3,5})?|' + r"'''(?:[^']|'(?!''))*+(?:'{3,5})?|#[^\n]*+"
    rf"|(?P<deep>{_PART}(?:{_DOT}{_PART}){{{_TOML_DEPTH},}}+)|{_PART}(?:{_DOT}{_PART})*+|.",
    re.DOTALL | re.ASCII,
)

Scalar = str | float | bool | None


class Setting(Struct, frozen=True):
    """One value: its dotted key and its line (from 1)."""

    key: str
    value: Scalar
    line: int | None


class Parsed(Struct, frozen=True):
    """The settings of a document, the bytes that were understood, what stopped it, and what follows the document."""

    settings: tuple[Setting, ...]
    good_bytes: int
    problem: str = ""
    rest: bytes = b""


def json_settings(data: bytes, budget: Budget) -> Parsed:
    """Read a JSON object; comments and trailing commas do no harm.

    Raises `NotMine` when it does not begin with an object.
    """
    text = data.decode("utf-8-sig", "replace")
    begin = len(text) - len(text.lstrip())
    if not text.startswith("{", begin):
        raise NotMine("no JSON object")
    lines = newlines(text)
    walk = literal.Walk()
    found: list[Setting] = []
    problem = "the object is not closed"
    try:
        for leaf in islice(budget.each(literal.leaves(text, begin, walk), _path), _SETTINGS):
            found.append(Setting(leaf.path, leaf.value, bisect_right(lines, leaf.at) + 1))  # noqa: PERF401 - kept
    except WorkExceeded as error:
        problem = error.message
    if walk.end >= 0:
        return Parsed(tuple(found), len(data), rest=text[walk.end :].strip()[:100].encode())
    # a byte that is no UTF-8 was replaced by a character of three
    good = min(len(text[: walk.last].encode("utf-8", "replace")), len(data))
    if len(found) == _SETTINGS:
        return Parsed(tuple(found), good, f"only the first {_SETTINGS} values were read")
    return Parsed(tuple(found), good, problem)


def _path(leaf: literal.Leaf | yaml.Leaf) -> str:
    return leaf.path


def newlines(text: str) -> array[int]:
    """Offsets of the newlines of a text."""
    return array("q", (m.start() for m in re.finditer("\n", text)))


def yaml_settings(data: bytes, budget: Budget) -> Parsed:
    """Read the scalars of a YAML document; raises `NotMine` when it is no mapping."""
    text = data[:_YAML_BYTES].decode("utf-8-sig", "replace")
    found: list[Setting] = []
    problem, good = "", len(data)
    try:
        for leaf in islice(budget.each(yaml.leaves(text), _path), _SETTINGS):
            found.append(Setting(leaf.path, leaf.value, leaf.line))  # noqa: PERF401 - what came before an error is kept
    except InputError as error:
        if not found:
            raise NotMine("no YAML mapping") from error
        good = _until_line(data, found[-1].line or 1)
        problem = error.message
    else:
        if len(data) > _YAML_BYTES:
            good, problem = _YAML_BYTES, f"only the first {_YAML_BYTES} bytes were read"
    if not any("." in s.key or not s.key.isdigit() for s in found if s.key):
        raise NotMine("no YAML mapping")
    return Parsed(tuple(found), min(good, len(data)), problem)


def _until_line(data: bytes, line: int) -> int:
    return min(sum(len(part) + 1 for part in data.split(b"\n", line)[:line]), len(data))


def toml_settings(data: bytes, budget: Budget) -> Parsed:
    """Read a TOML document; a damaged one is read up to the last line with which it is whole.

    Raises `NotMine` when no part of it is TOML.
    """
    text = data[:_TOML_BYTES].decode("utf-8-sig", "replace").replace("\r\n", "\n")
    deep = next((found.start() for found in _DEEP_KEY.finditer(text) if found["deep"]), None)
    document, kept = _toml(text if deep is None else text[: text.rfind("\n", 0, deep) + 1])
    lines = _toml_lines(kept)
    found: list[Setting] = []
    try:
        for key, value in islice(budget.each(_flat(document, "", 0), itemgetter(0)), _SETTINGS):
            line = lines.get(key) or lines.get(re.sub(r"\.\d+(?=\.|$)", "", key))
            found.append(Setting(key, value, line))
    except WorkExceeded as error:
        return Parsed(tuple(found), len(data) * len(found) // (len(found) + 1), error.message)
    if not found:
        raise NotMine("no TOML")
    if len(kept) == len(text) and len(data) <= _TOML_BYTES:
        return Parsed(tuple(found), len(data))
    why = "no TOML behind the last value" if deep is None else f"a key has more than {_TOML_DEPTH} parts"
    return Parsed(tuple(found), min(len(kept.encode()), len(data)), why)


def _toml(text: str) -> tuple[dict[str, object], str]:
    """The document, or what is whole of it: the part before the line that is named as wrong, at most 20 times."""
    rest = text
    for _ in range(20):
        try:
            return tomllib.loads(rest), rest
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            found = re.search(r"at line (\d+)", str(error))
            lines = rest.splitlines(keepends=True)
            line = int(found[1]) - 1 if found else len(lines) - 1
            rest = "".join(lines[: min(line, len(lines) - 1)])
        if not rest.strip():
            break
    raise NotMine("no TOML")


def _flat(value: object, path: str, depth: int) -> Iterator[tuple[str, Scalar]]:
    if depth > _TOML_DEPTH:
        return
    before = f"{path}." if path else ""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _flat(inner, f"{before}{key}", depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _flat(inner, f"{before}{index}", depth + 1)
    else:
        yield path, value if isinstance(value, (str, int, float, bool)) else str(value)


def _toml_lines(text: str) -> dict[str, int]:
    """Line of each key, by its path; those of arrays of tables by the path with its index and without."""
    found: dict[str, int] = {}
    table, counts = "", dict[str, int]()
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > 2000:
            continue
        if head := _TABLE.match(line):
            table = _unquoted(head[1])
            if line.lstrip().startswith("[["):
                counts[table] = counts.get(table, -1) + 1
                table = f"{table}.{counts[table]}"
        elif given := _ASSIGN.match(line):
            path = f"{table}.{_unquoted(given[1])}" if table else _unquoted(given[1])
            found.setdefault(path, number)
            found.setdefault(re.sub(r"\.\d+(?=\.|$)", "", path), number)
    return found


def _unquoted(path: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in path.split("."))
