"""JSON as training tools write it: bare NaN and Infinity, byte-order marks, lone surrogates; written so NaN stays NaN.

The fast reader is asked first. It refuses what Python's own `json.dumps` writes for non-finite numbers, and turns
integers above 64 bits into floats without a word, so those documents go to the standard library's reader.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Any, cast

import orjson

from forensics.errors import InputError, LimitExceeded
from forensics.io.limits import DEFAULT, Limits
from forensics.io.safe_text import UNSAFE
from forensics.patterns import lazily
from forensics.values import field_names, is_value

_BOM = b"\xef\xbb\xbf"
_STRINGS = lazily(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SHAPE = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x2D if byte == 0x2D else 0x20 for byte in range(256))
#: The shortest numbers that 64 bits may not hold, every digit written as 0.
_BEYOND_64_BITS = (b"0" * 20, b"-" + b"0" * 19)
_ESCAPE = lazily(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_I64 = range(-(1 << 63), 1 << 64)


def as_object(value: object) -> dict[str, object]:
    """Give a value that was read where it is an object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """Give a value that was read where it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []


def loads(data: bytes, limits: Limits = DEFAULT) -> object:
    """Read one JSON document; NaN and Infinity literals become floats, a lone surrogate stays as its visible escape.

    Raises `LimitExceeded` above `limits.json_bytes` or `limits.json_depth`; `InputError` when it is not JSON.
    """
    if len(data) > limits.json_bytes:
        raise LimitExceeded("json_bytes", limit=limits.json_bytes, actual=len(data))
    data = data.removeprefix(_BOM)
    _check_depth(data, limits.json_depth)
    shape = data.translate(_SHAPE)
    if not any(digits in shape for digits in _BEYOND_64_BITS):
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
    return _loads_slowly(data)


def dumps(document: object, *, compact: bool = False) -> bytes:
    """Write JSON; non-finite floats become the strings `NaN`, `Infinity` and `-Infinity`, never null.

    Integers above 64 bits become strings of their digits; undecodable characters become visible escapes. DEL, C1,
    bidirectional and invisible characters, which direct a terminal, are written as JSON's own escapes: the same value.
    """
    written = orjson.dumps(_spelled(document), option=0 if compact else orjson.OPT_INDENT_2)
    written = written.replace(b"##[", b"#\\u0023[")  # a command to a CI runner, wherever it is in a line
    if written.isascii() and b"\x7f" not in written:
        return written
    return UNSAFE.sub(_escaped, written.decode("utf-8")).encode("utf-8")


def _escaped(found: re.Match[str]) -> str:
    """JSON's own escape of a character, two of them beyond 16 bits; the line feeds of an indented document stay."""
    if found[0] == "\n":
        return "\n"
    code = found[0].encode("utf-16-be")
    return "".join(f"\\u{code[i : i + 2].hex()}" for i in range(0, len(code), 2))


def _loads_slowly(data: bytes) -> object:
    text = data.decode("utf-8", errors="replace")
    text = _ESCAPE.sub(lambda found: f"\\\\{found[1]}" if found[1] else found[0], text) if "\\u" in text else text
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        message = f"not JSON: {error}"
        raise InputError(message) from error


def _peel(brackets: bytes, limit: int) -> tuple[bytes, bool]:
    """Take the innermost pairs away, one level a round: what is left, and whether `limit` levels did not suffice."""
    for _ in range(limit):
        fewer = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(fewer) == len(brackets):
            return brackets, False
        brackets = fewer
    return brackets, bool(brackets)


def _check_depth(data: bytes, limit: int) -> None:
    """Refuse a document nested deeper than `limit`, at the speed of `bytes.replace`.

    Strings are taken out only when the brackets do not pair up with them in; a document whose strings were made to
    hide its depth is still held to the fast reader's own limit of 1,024.
    """
    if data.count(b"[") + data.count(b"{") <= limit:
        return
    left, _ = _peel(data.translate(None, _NOT_BRACKETS), limit)
    if left and _peel(_STRINGS.sub(b"", data).translate(None, _NOT_BRACKETS), limit)[1]:
        raise LimitExceeded("json_depth", limit=limit, actual=limit + 1)


def _number(value: float) -> float | str:
    if isinstance(value, int):
        return value if value in _I64 else str(value)
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _spelled(value: object) -> Any:  # noqa: ANN401, PLR0911 - JSON; one return for each kind of value
    if type(value) is str and value.isascii():
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str | PurePath):
        return str(value).encode("utf-8", errors="backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {str(_spelled(k)): _spelled(v) for k, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_spelled(v) for v in cast("Sequence[object]", value)]
    if isinstance(value, AbstractSet):
        return sorted((_spelled(v) for v in cast("AbstractSet[object]", value)), key=str)
    if is_value(value):
        return {name: _spelled(getattr(value, name)) for name in field_names(value)}
    return value
