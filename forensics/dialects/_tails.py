"""Key-value tails: `k=v | k=v`, `k: v`, `'k': v` … to (row, key, value).

Most lines of a file share one layout, so the layout of the first unread line becomes a direct pattern, tried on all
others; after eight layouts the general pattern reads the rest.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import polars as pl

from forensics.dialects import _numbers
from forensics.dialects.spec import TAILS, N

_LAYOUTS = 8
_WIDEST = 64
_LONG_END = 80
_VALUE = ".,0123456789" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz"
_SCHEMA = {"row": pl.Int64, "key": pl.String, "value": pl.Float64}


@cache
def _compiled(kind: str) -> re.Pattern[str]:
    return re.compile(TAILS[kind])


def layout(kind: str, tail: str) -> tuple[list[str], str] | None:
    """Keys of one tail, and an anchored pattern with one group per value that fits tails of the same layout.

    The pattern never has to choose (a value's characters exclude the one that follows it), which the regex engine runs
    four times as fast as the general one; what is no number in the end is dropped when it is cast.
    """
    keys: list[str] = []
    parts: list[str] = []
    at = 0
    for found in _compiled(kind).finditer(tail):
        low, high = found.span("value")
        parts.append(_literal(tail[at:low]))
        parts.append(_value(found["value"], tail[high : high + 1]))
        keys.append(found["key"].strip())
        at = high
    if not keys or len(set(keys)) != len(keys) or len(keys) > _WIDEST:
        return None
    rest = tail[at:]
    end = _literal(rest) + " *$" if len(rest) < _LONG_END and not any(c.isdigit() for c in rest) else ""
    return keys, "^" + "".join(parts) + end


def _value(printed: str, following: str) -> str:
    """A group for a value: the characters of numbers, less the one that follows unless the number itself has it."""
    if following and following not in printed:
        letters = "".join(c for c in _VALUE if c != following)
        return f"([-+{letters}]+)"
    return f"({N}[kKMGBTPE]?)"


def _literal(text: str) -> str:
    """The text between two values; blanks may grow and shrink."""
    return re.sub(r" +", " *", re.escape(text).replace("\\ ", " ").replace("\\\t", " "))


def read(kind: str, tails: pl.Series) -> pl.DataFrame:
    """All pairs of all tails: columns row (index into `tails`), key, value; in printed order."""
    parts: list[pl.DataFrame] = []
    todo = tails.is_not_null().arg_true()
    for _ in range(_LAYOUTS):
        if todo.is_empty():
            break
        lines = tails.gather(todo)
        known = layout(kind, lines[0])
        if known is None:
            break
        keys, pattern = known
        groups = lines.str.extract_groups(pattern).struct.unnest()
        fits = groups.to_series(0).is_not_null()
        if not fits[0]:
            break
        parts.append(_long(todo.filter(fits), keys, groups.filter(fits)))
        todo = todo.filter(~fits)
    if not todo.is_empty():
        parts.append(_general(kind, todo, tails.gather(todo)))
    if not parts:
        return pl.DataFrame(schema=_SCHEMA)
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("row", maintain_order=True)


def _long(rows: pl.Series, keys: list[str], groups: pl.DataFrame) -> pl.DataFrame:
    """Interleave one column per key into one row per pair."""
    height, width = len(rows), len(keys)
    stacked = _numbers.floats(pl.concat(groups.get_columns()))
    order = np.arange(height * width).reshape(width, height).T.ravel()
    return pl.DataFrame(
        {
            "row": rows.cast(pl.Int64).gather(np.repeat(np.arange(height), width)),
            "key": pl.Series(keys).gather(np.tile(np.arange(width), height)),
            "value": stacked.gather(order),
        }
    )


def _general(kind: str, rows: pl.Series, tails: pl.Series) -> pl.DataFrame:
    whole = TAILS[kind]
    found = pl.DataFrame({"row": rows.cast(pl.Int64), "pair": tails.str.extract_all(whole)}).explode("pair").drop_nulls()
    pairs = found["pair"].str.extract_groups(whole).struct.unnest()
    return pl.DataFrame({"row": found["row"], "key": pairs["key"].str.strip_chars(), "value": _numbers.floats(pairs["value"])})
