"""Student's t: tail probabilities and quantiles, for any positive number of degrees of freedom."""

from __future__ import annotations

from functools import cache, lru_cache
from math import exp, lgamma, log, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statistics import NormalDist

_MANY = 1e5  # from here on the normal distribution is the same to five digits
_TINY = 1e-300


@cache
def normal() -> NormalDist:
    """Give the standard normal distribution."""
    from statistics import NormalDist  # noqa: PLC0415 - few runs ask for it, and Python's module takes time to load

    return NormalDist()


def t_tail(t: float, df: float) -> float:
    """Probability of a value above `t`."""
    if df > _MANY:
        return 1 - normal().cdf(t)
    half = 0.5 * _beta_share(df / (df + t * t), df / 2, 0.5)
    return half if t >= 0 else 1 - half


@lru_cache(maxsize=4096)
def t_quantile(tail: float, df: float) -> float:
    """Value that is exceeded with probability `tail`, which is below one half."""
    if df > _MANY:
        return normal().inv_cdf(1 - tail)
    low, high = 0.0, 2.0
    while t_tail(high, df) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:  # until no number is left between the two
        low, high = (middle, high) if t_tail(middle, df) > tail else (low, middle)
    return middle


def _beta_share(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction."""
    c, d = 1.0, 1 / _safe(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _safe(1 + even * d), _safe(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _safe(1 + odd * d), _safe(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < 1e-12:
            break
    return value


def _safe(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def welch_df(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Degrees of freedom of the difference of two means, from (standard error, df) of each (Welch 1947)."""
    (a, df_a), (b, df_b) = first, second
    below = a**4 / df_a + b**4 / df_b
    return (a * a + b * b) ** 2 / below if below > 0 else min(df_a, df_b)


def hypot(*parts: float) -> float:
    """Root of a sum of squares."""
    return sqrt(sum(part * part for part in parts))
