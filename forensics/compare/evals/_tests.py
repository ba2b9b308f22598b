"""Tests of a difference between two evaluations: paired by document, by standard errors, or by counts alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, lgamma, log, sqrt
from statistics import NormalDist

import numpy as np
from msgspec import Struct

from forensics.stats.spread import Floats
from forensics.stats.student import t_tail

_NORMAL = NormalDist()
#: Two-sided 5 % (z 1.960) and a power of 90 % (z 1.282): what a difference must be, in errors, to be found.
_FOUND = _NORMAL.inv_cdf(0.975) + _NORMAL.inv_cdf(0.9)
_95 = _NORMAL.inv_cdf(0.975)
_RESAMPLES, _BATCH_CELLS, _FEWEST_HITS, _MOST_BOOTSTRAP = 10_000, 4_000_000, 20, 2_000


class Tested(Struct, frozen=True):
    """A tested difference, candidate minus base; `p` is two-sided, `se` of the difference, `n` documents.

    `fell` and `rose` count the documents that only the base and only the candidate had right, where they are paired.
    """

    method: str
    delta: float
    se: float
    p: float
    n: int | None = None
    fell: int | None = None
    rose: int | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Give the 95 % interval of the difference."""
        return self.delta - _95 * self.se, self.delta + _95 * self.se

    @property
    def detectable(self) -> float:
        """Give the smallest difference that would be found in nine of ten cases (two-sided 5 %)."""
        return _FOUND * self.se


def paired(base: Floats, cand: Floats) -> Tested:
    """Compare scores of the same documents: McNemar's exact test for right or wrong, else a paired bootstrap."""
    n, gaps = len(base), cand - base
    delta = float(gaps.mean())
    if _is_binary(base) and _is_binary(cand):
        fell, rose = int((gaps < 0).sum()), int((gaps > 0).sum())
        se = _paired_se(fell, rose, n)
        return Tested("McNemar, exact", delta, se, mcnemar(fell, rose), n, fell, rose)
    name = "paired t" if n >= _MOST_BOOTSTRAP else "paired bootstrap"
    return Tested(name, delta, float(gaps.std(ddof=1)) / sqrt(n) if n > 1 else 0.0, _bootstrap(gaps), n)


def mcnemar(fell: int, rose: int) -> float:
    """Give the exact two-sided p of McNemar's test."""
    n, k = fell + rose, min(fell, rose)
    return 1.0 if n == 0 else min(1.0, 2 * _binomial_up_to(k, n))


def by_errors(delta: float, base_se: float, cand_se: float) -> Tested | None:
    """Compare by standard errors as of different documents: conservative where they are the same."""
    se = sqrt(base_se * base_se + cand_se * cand_se)
    return Tested("z of standard errors", delta, se, two_sided(delta / se)) if se > 0 else None


def by_counts(base: tuple[float, int], cand: tuple[float, int]) -> Tested | None:
    """Compare two shares from values and documents alone (Agresti and Caffo 2000: one right and one wrong added)."""
    (p, n), (q, m) = base, cand
    if not (0 <= p <= 1 and 0 <= q <= 1 and n > 0 and m > 0):
        return None
    (a, big_n), (b, big_m) = ((p * n + 1) / (n + 2), n + 2), ((q * m + 1) / (m + 2), m + 2)
    se = sqrt(a * (1 - a) / big_n + b * (1 - b) / big_m)
    return Tested("binomial, from the number of documents", q - p, se, two_sided((b - a) / se), min(n, m))


def two_sided(z: float) -> float:
    """Probability of a normal value at least as far from 0."""
    return erfc(abs(z) / sqrt(2))


def holm(ps: Sequence[float]) -> list[float]:
    """Adjust p values for being many (Holm 1979); the order is kept."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    adjusted, most = [1.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        most = max(most, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = most
    return adjusted


def _paired_se(fell: int, rose: int, n: int) -> float:
    """Error of a difference of paired shares, one changed document added each way (Bonett and Price 2012)."""
    a, b = (fell + 1) / (n + 2), (rose + 1) / (n + 2)
    return sqrt((a + b - (a - b) ** 2) / (n + 2))


def _is_binary(values: Floats) -> bool:
    return bool(((values == 0) | (values == 1)).all())


def _binomial_up_to(k: int, n: int) -> float:
    """Probability of at most `k` heads of `n`."""
    whole = lgamma(n + 1) - n * log(2)
    i = np.arange(k + 1)
    logs = np.array([whole - lgamma(x + 1) - lgamma(n - x + 1) for x in i.tolist()])
    return float(np.exp(logs).sum())


def _bootstrap(gaps: Floats) -> float:
    """Two-sided p of the mean of paired differences, by a studentised bootstrap (Efron and Tibshirani 1993, 16.2).

    Where fewer than 20 resamples are as far out, and for many documents, Student's t gives the tail.
    """
    n = len(gaps)
    sd = float(gaps.std(ddof=1)) if n > 1 else 0.0
    if sd == 0:
        return 1.0 if n < 2 or gaps[0] == 0 else 0.0
    t = abs(float(gaps.mean())) / (sd / sqrt(n))
    if n >= _MOST_BOOTSTRAP:
        return min(1.0, 2 * t_tail(t, n - 1))
    centred = gaps - gaps.mean()
    rng = np.random.default_rng(n)
    hits, left = 0, _RESAMPLES
    while left > 0:
        size = min(left, max(1, _BATCH_CELLS // n))
        drawn = centred[rng.integers(0, n, (size, n))]
        spread = drawn.std(axis=1, ddof=1)
        means = np.abs(drawn.mean(axis=1))
        hits += int((means * sqrt(n) >= t * spread).sum())
        left -= size
    return min(1.0, 2 * t_tail(t, n - 1)) if hits < _FEWEST_HITS else (hits + 1) / (_RESAMPLES + 1)
