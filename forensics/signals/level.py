"""Where a positive series rose to a higher level, and by how much: levels only, no thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, log, sqrt

import polars as pl


@dataclass(frozen=True, slots=True)
class Shift:
    """The best single split of a series into a lower and a higher part.

    `index` is the first value of the higher part. `before` and `after` are the medians of the two parts; `near_before`
    and `near_after` those of the values next to the split. `kept_before` and `kept_after` are the shares of the two
    parts on their own side of the geometric middle. `quantum` bounds the unit in which the values are printed: the
    smallest value or the smallest difference of two.
    """

    index: int
    before: float
    after: float
    near_before: float
    near_after: float
    kept_before: float
    kept_after: float
    quantum: float


@dataclass(frozen=True, slots=True)
class Climb:
    """A series cut into equal parts: the first and last part's median, and how the rise is spread.

    `falls` is the largest relative fall from one part to the next; `steepest` is the share of the whole logarithmic
    rise that lies in its two largest increments, near 1 for a staircase and small for a drift.
    """

    first: float
    last: float
    falls: float
    steepest: float


def shift_of(values: pl.Series, *, edge: int, near: int) -> Shift | None:
    """Find the split with the largest rise; None when there is no rise or fewer than `2 * edge` values.

    Values must be positive. Single outliers are removed by a running median of three, which keeps an edge in place. The
    split maximises the difference of the mean logarithms, weighted by sqrt(k (n - k) / n), as in a CUSUM test.
    """
    n = values.len()
    if n < 2 * edge:
        return None
    calm = _calm(values)
    sums = calm.log().cum_sum()
    whole, best, index = float(sums[-1]), 0.0, 0
    for k, head in enumerate(sums.to_list()[: n - edge], start=1):
        gain = ((whole - head) / (n - k) - head / k) * sqrt(k * (n - k) / n)
        if k >= edge and gain > best:
            best, index = gain, k
    if not index:
        return None
    low, high = calm.head(index), calm.tail(n - index)
    before, after = _median(low), _median(high)
    middle = sqrt(before * after)
    return Shift(
        index=index,
        before=before,
        after=after,
        near_before=_median(low.tail(near)),
        near_after=_median(high.head(near)),
        kept_before=float((low < middle).sum()) / low.len(),
        kept_after=float((high > middle).sum()) / high.len(),
        quantum=_quantum(values),
    )


def climb_of(values: pl.Series, *, parts: int) -> Climb | None:
    """Measure how a positive series climbed over `parts` equal parts; None when it is shorter than that or did not."""
    size = values.len() // parts
    if not size:
        return None
    medians = [log(_median(values.slice(i * size, size))) for i in range(parts)]
    rises = [b - a for a, b in pairwise(medians)]
    whole = medians[-1] - medians[0]
    if whole <= 0:
        return None
    return Climb(
        first=exp(medians[0]),
        last=exp(medians[-1]),
        falls=1 - exp(min(0.0, *rises)),
        steepest=sum(sorted(rises)[-2:]) / whole,
    )


def _calm(values: pl.Series) -> pl.Series:
    """Take the running median of three; the two ends stay as they are."""
    return values.rolling_median(3, center=True).fill_null(values)


def _median(values: pl.Series) -> float:
    found = values.median()
    return float(found) if isinstance(found, int | float) else 0.0


def _quantum(values: pl.Series) -> float:
    least = pl.concat([values, values.unique().sort().diff().drop_nulls()]).min()
    return float(least) if isinstance(least, int | float) else 0.0
