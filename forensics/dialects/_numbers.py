"""Printed numbers to floats, a column at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import polars as pl

#: A letter of thousands behind a number → what it multiplies by.
SUFFIXES: Mapping[str, float] = MappingProxyType(
    {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
)

#: A duration as a clock shows it, in minutes and seconds or with the hours: `1:02:03`, `00:30`, `2m 3s`.
CLOCKED = r"(?:\d{1,4}(?::[0-5]\d){1,2}(?:\.\d+)?|(?:\d{1,4}h ?)?\d{1,4}m ?[0-5]?\ds)"
#: What Fortran writes of a double: `0.210D+01`.
_FORTRAN = r"(?i)^([-+]?(?:\d+\.?\d*|\.\d+))d([-+]\d+)$"
_POINTS = r"^([-+]?[1-9]\d{0,2})\.(\d{3})(?:,0*)?$"
_ONE_COMMA = r"^([-+]?\d+),(\d+(?:[eE][-+]?\d+)?)$"


def _spelled(text: pl.Expr) -> pl.Expr:
    """Read what the plain cast refuses: thousands separators, magnitude suffixes, odd spellings of nan and inf."""
    bare = text.str.replace_all(r"[,\s']", "").str.replace(_FORTRAN, "${1}e$2")
    low = bare.str.to_lowercase()
    sign = pl.when(bare.str.starts_with("-")).then(-1.0).otherwise(1.0)
    suffix = bare.str.extract(r"\d\.?([kKMGBTP])$", 1).replace_strict(
        list(SUFFIXES), list(SUFFIXES.values()), default=None, return_dtype=pl.Float64
    )
    return (
        pl.when(low.str.contains("nan", literal=True))
        .then(float("nan"))
        .when(low.str.contains("inf", literal=True))
        .then(sign * float("inf"))
        .when(suffix.is_not_null())
        .then(bare.str.head(-1).cast(pl.Float64, strict=False) * suffix)
        .otherwise(bare.str.strip_suffix("E").cast(pl.Float64, strict=False))
    )


def seconds_of(clock: str) -> float:
    """Give the seconds of a duration as a clock shows it: 3723 of `1:02:03`."""
    parts = [*map(float, re.sub("[hm] ?", ":", clock).rstrip("s").split(":"))]
    return sum(part * 60**power for power, part in enumerate(reversed(parts)))


def _clocked(text: pl.Expr) -> pl.Expr:
    """Read durations as a clock shows them, and all else as it is spelled."""
    colons = text.str.replace_all("[hm] ?", ":").str.strip_suffix("s")
    parts = pl.when(text.str.contains(rf"^{CLOCKED}$")).then(colons.str.split(":")).list.reverse()
    read = [parts.list.get(power, null_on_oob=True).cast(pl.Float64, strict=False) * 60**power for power in range(3)]
    return pl.when(parts.is_not_null()).then(pl.sum_horizontal(read)).otherwise(_spelled(text))


def floats(text: pl.Series, *, comma: bool = False, points: bool = False) -> pl.Series:
    """Printed numbers as Float64; null stays null, what is no number becomes null, nan and ±inf are kept.

    Each round is dearer than the one before and sees only what that one refused: a cast, a cast without thousands
    separators, and the odd spellings. `comma`: decimals are behind a comma; `points`: points part thousands.
    """
    if points:
        text = text.str.replace(_POINTS, "$1$2")
    if comma:
        text = text.str.replace(_ONE_COMMA, "$1.$2")
    plain = text.cast(pl.Float64, strict=False)
    for reader in (_without_commas, _clocked):
        if plain.null_count() == text.null_count():
            return plain
        odd = plain.is_null() & text.is_not_null()
        read = text.filter(odd).to_frame("v").select(v=reader(pl.col("v")))["v"]
        plain = plain.scatter(odd.arg_true(), read)
    return plain


def _without_commas(text: pl.Expr) -> pl.Expr:
    return text.str.replace_all(",", "", literal=True).cast(pl.Float64, strict=False)


def integers(text: pl.Series, *, points: bool = False) -> pl.Series:
    """Printed counts as Int64: `1,000`, `1200.0` and ` 12` are counts; anything else becomes null.

    `points`: points part thousands.
    """
    if points:
        text = text.str.replace(_POINTS, "$1$2")
    plain = text.cast(pl.Int64, strict=False)
    if plain.null_count() == text.null_count():
        return plain
    wide = floats(text)
    safe = wide.is_finite() & (wide.abs() < 2.0**62)
    whole = wide.to_frame("w").select(w=pl.when(safe).then(pl.col("w")).otherwise(None))["w"]
    return whole.cast(pl.Int64, strict=False)
