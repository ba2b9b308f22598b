"""Values of settings made comparable: 1e-4 and 0.0001, "None" and null, torch.bfloat16 and bf16, a folder elsewhere."""

from __future__ import annotations

import json
import math
import re

from forensics.patterns import lazily

Value = str | float | bool | None | tuple["Value", ...]

_SPELLED = {
    **dict.fromkeys(("none", "null", "~", ""), None),
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "bf16-mixed": "bf16"}
_NUMBER = lazily(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")
_FOLDER = lazily(r"(?:[a-z][a-z0-9+.-]*://|/|~/|\.{1,2}/|[A-Za-z]:\\)")
_SAME = 1e-9


def value_of(text: str | None) -> Value:
    """Read the JSON text of a fact; text that is no JSON is a word."""
    if text is None:
        return None
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        read = text
    return _plain(read)


def _plain(read: object) -> Value:
    if read is None or isinstance(read, bool):
        return read
    if isinstance(read, int | float):
        return _number(read)
    if isinstance(read, list | tuple):
        return tuple(_plain(item) for item in read)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    return _word(str(read))


def _number(read: float) -> Value:
    try:
        return float(read)
    except OverflowError:
        return str(read)


def _word(text: str) -> Value:
    word = text.strip().strip("\"'")
    lowered = word.lower()
    if lowered in _SPELLED:
        return _SPELLED[lowered]
    if len(word) < 40 and _NUMBER.match(word):
        return float(word.replace("_", ""))
    if word[:1] in "[(" and word[-1:] in "])" and len(word) < 4000:
        return tuple(_word(part) for part in word[1:-1].split(",") if part.strip())
    return _named(word)


def _named(word: str) -> str:
    """A word in its usual form: a dtype by its short name, a folder by its last part, an enum by its value."""
    if found := re.fullmatch(r"<[\w.]+: '?([^'>]*)'?>", word):
        word = found[1]
    plain = word.removeprefix("torch.").removeprefix("jnp.")
    if plain.lower() in _DTYPES:
        return _DTYPES[plain.lower()]
    if _FOLDER.match(plain) and len(plain) > 1:
        return ".../" + re.split(r"[\\/]", plain.rstrip("\\/"))[-1]
    return plain


def same(a: Value, b: Value) -> bool:
    """Whether two values mean the same; words that name things may come in any order."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return _same_items(a, b)
    if isinstance(a, bool) or isinstance(b, bool):
        return (
            a is b
            or (isinstance(a, float) and a == float(b is True))
            or (isinstance(b, float) and b == float(a is True))
        )
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=_SAME) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, str) and isinstance(b, str):
        return a.lower() == b.lower()
    return a == b


def _same_items(a: tuple[Value, ...], b: tuple[Value, ...]) -> bool:
    if all(isinstance(item, str) for item in (*a, *b)):
        return sorted(map(str, a)) == sorted(map(str, b))
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


def off(value: Value) -> bool:
    """Whether a value says that something is not used: null, false, 0, an empty list."""
    return value is None or value is False or value in (0.0, ()) or value == "disabled"


def distance(a: Value, b: Value) -> float | None:
    """|ln(b / a)| of two positive numbers; None for anything else."""
    if isinstance(a, float) and isinstance(b, float) and a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b):
        return abs(math.log(b / a))
    return None
