"""Which steps of two series are the same ones: a factor and an offset, from the values that both hold."""

from __future__ import annotations

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.joined._strands import FULL_DIGITS, Strand, kind_of
from forensics.stats.spread import Floats, median_of

#: A value that occurs more often than this in a series tells no place.
_OFTEN = 4
#: Of a longer series so many records are enough to fit a line.
_ENOUGH = 20_000
_PROBES = 24
_LEAST = 5
#: Seconds by which the clocks of two stores of one record differ at most; logs and trackers flush late.
SKEW_S = 60.0
#: Digits that a number of 32 bits keeps; and decimals beyond which a difference says no more.
_FLOAT32_DIGITS, _MOST_DECIMALS = 7, 40
_QUARTER_S, _ZONE_S = 900.0, 14 * 3600.0


class Line(Struct, frozen=True):
    """`step of a = factor * step of b + offset`; `clock_s` is what the clock of `a` is ahead of b's, None without."""

    factor: float
    offset: float
    clock_s: float | None


def fit(a: Strand, b: Strand) -> Line | None:
    """Fit the line through most pairs of equal values of two series; None when it goes through too few of them."""
    pairs = _pairs(a, b)
    if pairs is None or pairs.height < _LEAST:
        return None
    clock_s = None
    if (times := pairs.drop_nulls(["ta", "tb"])).height * 2 > pairs.height:
        clock_s = _clock(times, local="text" in {kind_of(a.source), kind_of(b.source)})
        if clock_s is None:
            return None
        pairs = times.filter(((pl.col("ta") - pl.col("tb")) / 1e9 - clock_s).abs() <= SKEW_S)
    xa, xb = pairs["xa"].cast(pl.Float64).to_numpy(), pairs["xb"].cast(pl.Float64).to_numpy()
    best, votes = (1.0, 0.0), 0
    for factor in _factors(a, b, xa, xb):
        offset, count = _mode(xa - factor * xb)
        if count > votes:
            best, votes = (factor, offset), count
    return Line(*best, clock_s) if votes >= _LEAST else None


def _pairs(a: Strand, b: Strand) -> pl.DataFrame | None:
    """Records of both that have one value at the precision of the coarser, where it is rare: xa, ta, xb, tb."""
    decimals, digits = min(a.decimals, b.decimals), min(a.digits, b.digits)
    if not _any_near(a, b, decimals, digits):
        return None
    found: list[pl.DataFrame] = []
    one_in = max(1, max(len(a), len(b)) // _ENOUGH)
    for key in _keys(decimals, digits):
        left, right = _keyed(a, key, "a", one_in), _keyed(b, key, "b", one_in)
        if _share(left, right) >= 0.3:
            found.append(left.join(right, on="key", how="inner"))
    return pl.concat(found).unique(["xa", "xb"]) if found else None


def _any_near(a: Strand, b: Strand, decimals: int, digits: int) -> bool:
    """Whether any value of one lies so near to one of the other that both may be rounded to the same number."""
    left, right = (np.sort(held[np.isfinite(held)]) for held in (a.value.to_numpy(), b.value.to_numpy()))
    if not (len(left) and len(right)):
        return False
    after = np.searchsorted(right, left).clip(max=len(right) - 1)
    gaps = np.minimum(np.abs(right[after] - left), np.abs(right[np.maximum(after - 1, 0)] - left))
    of_size = np.abs(left) * (10.0 ** (1 - min(digits, _FLOAT32_DIGITS)))
    return bool((gaps <= 2 * (of_size + 10.0 ** -min(decimals, _MOST_DECIMALS))).any())


def _keys(decimals: int, digits: int) -> list[pl.Expr]:
    value = pl.col("value")
    if decimals >= FULL_DIGITS and digits >= FULL_DIGITS:
        return [value.cast(pl.Float32).cast(pl.Float64)]
    rounded = [value.round(decimals)] if decimals < FULL_DIGITS else []
    return [*rounded, value.round_sig_figs(digits)] if 3 <= digits < FULL_DIGITS else rounded


def _keyed(strand: Strand, key: pl.Expr, side: str, one_in: int) -> pl.DataFrame:
    """Records of a series with `key`; of a long one those of one value in `one_in`, the same values in every series."""
    frame = pl.DataFrame({"value": strand.value, f"x{side}": strand.at, f"t{side}": strand.t_ns})
    frame = frame.filter(pl.col("value").is_finite()).with_columns(key=key + 0.0).drop("value")
    if one_in > 1:
        frame = frame.filter(pl.col("key").hash() % one_in == 0)
    return frame.filter(pl.len().over("key") <= _OFTEN)


def _share(left: pl.DataFrame, right: pl.DataFrame) -> float:
    """The share of some values of one that the other has too, the better of both directions."""
    if not (left.height and right.height):
        return 0.0
    some = [f["key"].gather_every(max(1, f.height // _PROBES)) for f in (left, right)]
    shares = (some[0].is_in(right["key"].implode()).mean(), some[1].is_in(left["key"].implode()).mean())
    return max(s if isinstance(s, float) else 0.0 for s in shares)


def _clock(times: pl.DataFrame, *, local: bool) -> float | None:
    """What the clocks of two stores differ by; None when the records were written at other times."""
    seconds = (times["ta"] - times["tb"]).cast(pl.Float64).to_numpy() / 1e9
    quarters = np.round(seconds / _QUARTER_S)
    near, count = _mode(quarters)
    shift = near * _QUARTER_S + 0.0  # no negative zero
    if (shift and not local) or abs(shift) > _ZONE_S or count < _LEAST:
        return None
    beside = median_of(np.abs(seconds[quarters == near] - shift))
    return shift if beside <= SKEW_S else None


def _factors(a: Strand, b: Strand, xa: Floats, xb: Floats) -> list[float]:
    """Step factors worth a try: one, the ratio of the usual distances of records, and the commonest slope."""
    found = [1.0]
    spacing = [s.at.diff().drop_nulls() for s in (a, b)]
    usual = [float(m) if isinstance(m := s.filter(s > 0).median(), int | float) else 0.0 for s in spacing]
    if all(usual):
        found.append(usual[0] / usual[1])
    order = np.lexsort((xa, xb))
    rise, run = np.diff(xa[order]), np.diff(xb[order])
    slopes = np.round(rise[(run > 0) & (rise > 0)] / run[(run > 0) & (rise > 0)], 6)
    if len(slopes):
        found.append(_mode(slopes)[0])
    return list(dict.fromkeys(_plain(f) for f in found))


def _plain(factor: float) -> float:
    """A whole number, or one over a whole number, exactly, where a factor is near to it."""
    whole = round(max(factor, 1 / factor))
    near = abs(max(factor, 1 / factor) - whole) < 1e-4 * whole
    return factor if not near else float(whole) if factor >= 1 else 1 / whole


def _mode(values: Floats) -> tuple[float, int]:
    """The commonest of some values, to six decimals, and how often it occurs."""
    kinds, counts = np.unique(np.round(values, 6), return_counts=True)
    best = int(np.argmax(counts))
    return float(kinds[best]), int(counts[best])
