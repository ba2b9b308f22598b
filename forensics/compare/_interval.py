"""Runs that logged at different intervals: single steps against means of many, compared as means of as many."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from forensics.analyses.pace.steady import Steady
from forensics.compare._pair import Estimate, Side, estimate, sides_of
from forensics.compare._series import FEWEST, Series
from forensics.stats.spread import Floats
from forensics.stats.student import hypot

_DIFFERENT = 1.5


def estimate_over_intervals(base: Steady, cand: Steady, series: tuple[Series, Series]) -> Estimate | None:
    """Estimate the ratio; None when fewer than eight records are left on a side.

    The mean of a log differs from the log of a mean by half the variance, and a mean over many steps may hold pauses.
    So where one run logs more rarely, the other is averaged to the same interval as well, without and with its pauses,
    and of the three the one with the smallest change is told.
    """
    first, second, multimodal = sides_of(base, cand)
    if min(len(first.logs), len(second.logs)) < FEWEST:
        return None
    plain = _rounded(estimate(first, second, multimodal=multimodal), base, cand)
    ratio = series[0].interval / series[1].interval
    if 1 / _DIFFERENT < ratio < _DIFFERENT:
        return plain
    averaged = list(_averaged(base, cand, ratio))
    found = [plain, *(_rounded(estimate(*pair, multimodal=False), base, cand) for pair in averaged)]
    least = min(found, key=lambda e: abs(e.log_ratio))
    return replace(least, se=max(e.se for e in found), method=f"{least.method}, over different logging intervals")


def _averaged(base: Steady, cand: Steady, ratio: float) -> list[tuple[Side, Side]]:
    size = max(2, round(max(ratio, 1 / ratio)))
    fine, rare = (cand, base) if ratio > 1 else (base, cand)
    pairs: list[tuple[Side, Side]] = []
    for seconds, other in (
        (np.where(fine.paused, np.exp(fine.spikes.base), fine.seconds), rare.logs[~rare.spikes.far]),
        (fine.seconds, np.log(rare.seconds)),
    ):
        means = _block_means(seconds, size)
        if len(means) >= FEWEST and len(other) >= FEWEST:
            a, b = Side(np.log(means), np.arange(len(means))), Side(other, -1 - np.arange(len(other)))
            pairs.append((b, a) if ratio > 1 else (a, b))
    return pairs


def _block_means(seconds: Floats, size: int) -> Floats:
    count = len(seconds) // size
    return seconds[: count * size].reshape(count, size).mean(axis=1)


def _rounded(found: Estimate, base: Steady, cand: Steady) -> Estimate:
    """Add the error of printing where the unit is not small against the noise: then it does not average out."""
    parts = [
        run.resolution / sqrt(12) if run.resolution > 2 * run.spikes.sd else run.resolution / sqrt(12 * found.count)
        for run in (base, cand)
    ]
    return replace(found, se=hypot(found.se, *parts))
