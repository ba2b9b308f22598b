"""Printed lines that a carrier keeps as strings of JSON objects: Docker, cloud logs, journald, JSON loggers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import orjson

from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily

_ROWS = [(tuple(key.split(".")), holds) for key, holds, _ in table_rows("forensics.dialects", "wraps.tsv")]
_LINES, _TIMES, _LEVELS, _ERRORS, _NUMBERS = (
    tuple(key for key, what in _ROWS if what == holds) for holds in ("line", "time", "level", "error", "aside")
)
_ASIDE = frozenset(key[-1] for key in (*_NUMBERS, *_LEVELS, *_TIMES))
_HOLDS = lazily(b'"(?:' + "|".join(dict.fromkeys(key[-1] for key in _LINES)).encode() + rb')"[ \t]*:')
_COUNTERS = frozenset((*keys_of("step_of_row"), *keys_of("epoch_of_row")))
#: A rank, or what another carrier put before the object, is shorter.
_BEFORE_BYTES = 120
_STAMPED = lazily(rb"\d:\d\d")
#: By the digits of a time since 1970: units in a second, and how fine it is written, alike each time.
_UNITS = {10: (1, "seconds"), 13: (10**3, "milliseconds"), 16: (10**6, "microseconds"), 19: (10**9, "microseconds")}


def opened(data: bytes) -> bytes:
    """Whole lines, each that an object carries in its place: its time, its text, blanks up to the same number of bytes.

    An object with numbers of its own, as a record of metrics, stays as it is. Newlines in a text become carriage
    returns, so the line keeps its number.
    """
    return data if _HOLDS.search(data) is None else b"\n".join(map(_line, data.split(b"\n")))


def _line(line: bytes) -> bytes:
    before = line[: line.find(b"{", 0, _BEFORE_BYTES)] if line.rstrip().endswith(b"}") else line
    if len(before) == len(line) or _HOLDS.search(line) is None:
        return line
    try:
        carrier = orjson.loads(line[len(before) :])
    except orjson.JSONDecodeError:
        return line
    key = next((key for key in _LINES if isinstance(_at(carrier, key), str)), None)
    if key is None or all(_at(carrier, mark) is None for mark in (*_TIMES, *_LEVELS)):
        return line
    if any(map(_has_numbers, (carrier, _at(carrier, key[:-1])))):
        return line
    errors = [text for error in _ERRORS if isinstance(text := _at(carrier, error), str)]
    ways = () if _STAMPED.search(before) else _TIMES
    time = next((time for way in ways if (time := _time(_at(carrier, way)))), "")
    parts = [_at(carrier, key).rstrip("\r\n"), *errors]
    text = "\r".join(part.replace("\r\n", "\r").replace("\n", "\r") for part in parts)
    bare = before + (f"{time} {text}" if time else text).encode("utf-8", "replace")
    blanks = len(line) - len(bare)
    return bare + b"\r" * (blanks > 0) + b" " * (blanks - 1) if blanks >= 0 else line


def _at(carrier: Any, key: tuple[str, ...]) -> Any:  # noqa: ANN401 - JSON
    for part in key:
        carrier = cast("dict[str, Any]", carrier).get(part) if isinstance(carrier, dict) else None
    return carrier


def _has_numbers(carrier: Mapping[str, object]) -> bool:
    """Whether an object has numbers of its own, or counts steps in an object within it."""
    within = (cast("dict[str, object]", v).items() for v in carrier.values() if isinstance(v, dict))
    own = ((k, v) for k, v in carrier.items() if k not in _ASIDE)
    counters = ((k, v) for items in within for k, v in items if k.lower() in _COUNTERS)
    return any(isinstance(v, int | float) and not isinstance(v, bool) for _, v in (*own, *counters))


def _time(value: object) -> str:
    """A time as text: as it is written, or in UTC where it is a count since 1970."""
    text = str(value) if isinstance(value, str | int | float) else ""
    whole, point, _ = text.partition(".")
    if not whole.isdigit() or len(whole) not in _UNITS:
        return text if ":" in text else ""
    units, fine = _UNITS[len(whole)]
    said = datetime.fromtimestamp(float(text) / units, UTC)
    return said.isoformat(timespec="microseconds" if point else fine).replace("+00:00", "Z")
