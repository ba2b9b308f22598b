"""Two series of times, base and candidate: the ratio of their steady times, with its error."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.pauses import Steps
from forensics.analyses.pace.steady import Steady
from forensics.stats.changes import Modes, modes_of
from forensics.stats.correlation import Mean, mean_of
from forensics.stats.spread import Floats, trimmed, winsorised
from forensics.stats.student import hypot, welch_df

_MANY_SPIKES = 0.12
_PAIRS, _PAIR_SHARE, _CORRELATED = 20, 0.5, 0.3
_SAME_SHARE, _SAME_DISTANCE = 0.25, 0.12


class Estimate(Struct, frozen=True):
    """Difference of mean log times, candidate minus base (positive: slower), with its standard error.

    `effective` is the number of independent values in the smaller run; `sd_long` the deviations of both runs that make
    `se`; `paired` when steps were compared one by one; `slow_share` the share of slow steps in either run.
    """

    log_ratio: float
    se: float
    df: float
    effective: float
    count: int
    sd_long: float
    method: str
    slow_share: tuple[float, float, float] | None = None


class Side(Struct, frozen=True):
    """Log times of one run that take part, and their steps."""

    logs: Floats
    steps: Steps


def sides_of(base: Steady, cand: Steady) -> tuple[Side, Side, bool]:
    """Leave out pauses of both runs, unless they are so many in one of them that they are a mode of it."""
    many = max(float(base.spikes.far.mean()), float(cand.spikes.far.mean())) > _MANY_SPIKES
    many = many or any(m is not None and 0.1 <= m.slow <= 0.9 for m in (modes_of(base.logs), modes_of(cand.logs)))
    sides = list[Side]()
    for run in (base, cand):
        keep = np.ones(len(run), dtype=np.bool_) if many else ~run.spikes.far
        sides.append(Side(run.logs[keep], run.steps[keep]))
    return sides[0], sides[1], many


def estimate(base: Side, cand: Side, *, multimodal: bool) -> Estimate:
    """Compare step by step where both saw the same work, else mode by mode, else the means.

    Both sides need at least eight values.
    """
    calm: Callable[[Floats], Floats] = trimmed if multimodal else winsorised
    paired = _paired(base, cand, calm)
    if paired is not None:
        return paired
    if multimodal:
        by_mode = _by_mode(base.logs, cand.logs)
        if by_mode is not None:
            return by_mode
    a, b = mean_of(calm(base.logs)), mean_of(calm(cand.logs))
    return _difference(a, b, "means")


def _difference(base: Mean, cand: Mean, method: str) -> Estimate:
    return Estimate(
        log_ratio=cand.value - base.value,
        se=hypot(base.se, cand.se),
        df=welch_df((base.se, base.df), (cand.se, cand.df)),
        effective=min(base.effective, cand.effective),
        count=min(base.count, cand.count),
        sd_long=hypot(base.sd_long, cand.sd_long),
        method=method,
    )


def _paired(base: Side, cand: Side, calm: Callable[[Floats], Floats]) -> Estimate | None:
    """Differences step by step, where the same step holds the same work: correlated in levels and in changes."""
    common, at_base, at_cand = np.intersect1d(base.steps, cand.steps, return_indices=True)
    if len(common) < max(_PAIRS, _PAIR_SHARE * min(len(base.logs), len(cand.logs))):
        return None
    a, b = base.logs[at_base], cand.logs[at_cand]
    least = max(_CORRELATED, 3.3 / sqrt(len(common)))
    calm_a, calm_b = calm(a), calm(b)
    if _correlation(calm_a, calm_b) <= least or _correlation(np.diff(calm_a), np.diff(calm_b)) <= least:
        return None
    found = mean_of(calm(b - a))
    return Estimate(found.value, found.se, found.df, found.effective, found.count, found.sd_long, "steps in pairs")


def _correlation(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    power = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / power if power > 0 else 0.0


def _by_mode(base: Floats, cand: Floats) -> Estimate | None:
    """Fast steps against fast ones and slow against slow, where both runs have the same two modes."""
    first, second = modes_of(base), modes_of(cand)
    if first is None or second is None or not _alike(first, second):
        return None
    slow = (first.slow + second.slow) / 2
    parts = [
        (1 - slow, _difference(_calm(base[base <= first.cut]), _calm(cand[cand <= second.cut]), "")),
        (slow, _difference(_calm(base[base > first.cut]), _calm(cand[cand > second.cut]), "")),
    ]
    share = [mean_of((x > m.cut).astype(np.float64)) for x, m in ((base, first), (cand, second))]
    z = (second.slow - first.slow) / max(1e-9, hypot(share[0].se, share[1].se))
    return Estimate(
        log_ratio=sum(weight * part.log_ratio for weight, part in parts),
        se=hypot(*(weight * part.se for weight, part in parts)),
        df=min(part.df for _, part in parts),
        effective=min(part.effective for _, part in parts),
        count=min(len(base), len(cand)),
        sd_long=hypot(*(weight * part.sd_long for weight, part in parts)),
        method="mode by mode",
        slow_share=(first.slow, second.slow, z),
    )


def _alike(first: Modes, second: Modes) -> bool:
    return abs(first.slow - second.slow) < _SAME_SHARE and abs(first.distance - second.distance) < _SAME_DISTANCE


def _calm(values: Floats) -> Mean:
    return mean_of(winsorised(values))
