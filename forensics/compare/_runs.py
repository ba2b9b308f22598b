"""One candidate against several baseline runs: how far identical runs lie apart is measured, not assumed."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

from forensics.compare._pair import Estimate
from forensics.compare.decide import Decision, Policy, decide

#: What is believed of run-to-run noise before it is measured: its deviation, and the degrees of freedom of that.
_PRIOR_SD, _PRIOR_DF = 0.01, 4.0


def decide_all(found: Sequence[Estimate], policy: Policy, *, noise_given: bool) -> Decision:
    """Judge a candidate against every baseline at once, by a moderated t on run means (Smyth 2004).

    The variance between baselines is mixed with a prior of 1 % and four degrees of freedom; a run-to-run noise that the
    caller gave is taken as known.
    """
    if len(found) == 1:
        return decide(found[0], policy)
    k = len(found)
    ratios = [each.log_ratio for each in found]
    middle = _central(found, fmean(ratios))
    if noise_given:
        return decide(middle, policy, runs_se=_hypot(middle.se, policy.run_noise * sqrt(1 + 1 / k)))
    own = fmean(each.se**2 for each in found) / 2
    df = _PRIOR_DF + k - 1
    moderated = (_PRIOR_DF * (_PRIOR_SD**2 + own) + (k - 1) * variance(ratios)) / df
    return decide(middle, policy, runs_se=sqrt(moderated * (1 + 1 / k)), df=df)


def _central(found: Sequence[Estimate], log_ratio: float) -> Estimate:
    worst = max(found, key=lambda each: each.se)
    return Estimate(
        log_ratio=log_ratio,
        se=worst.se,
        df=worst.df,
        effective=min(each.effective for each in found),
        count=min(each.count for each in found),
        sd_long=worst.sd_long,
        method=worst.method,
    )


def _hypot(a: float, b: float) -> float:
    return sqrt(a * a + b * b)
