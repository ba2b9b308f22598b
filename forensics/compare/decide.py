"""From an estimated ratio to a verdict: regression, improvement, no change, or the data that would settle it."""

from __future__ import annotations

from enum import StrEnum
from math import ceil, exp, inf, log1p, sqrt

from msgspec import Struct

from forensics.compare._pair import Estimate
from forensics.stats.student import hypot, t_quantile, t_tail

#: Fewer independent values than this on one side carry no error of their own.
_FEWEST_EFFECTIVE = 7.0
_POWER_TAIL = 0.1


class Answer(StrEnum):
    """The answer of a comparison."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    NO_CHANGE = "no_change"
    INCONCLUSIVE = "inconclusive"


class Policy(Struct, frozen=True):
    """What a comparison asks: `alpha` one-sided, the smallest change worth telling, and what runs differ by themselves.

    `tolerance` and `max_slowdown` are relative changes of throughput; `run_noise` is the standard deviation of the
    throughput of identical runs, relative. `alpha_same` is the error with which two runs are called the same (two
    one-sided tests, Schuirmann 1987).
    """

    alpha: float = 0.005
    tolerance: float = 0.01
    max_slowdown: float = 0.0
    run_noise: float = 0.005
    alpha_same: float = 0.05

    @property
    def slower(self) -> float:
        """Smallest rise of the log time that is a regression."""
        return -log1p(-max(self.tolerance, self.max_slowdown))

    @property
    def faster(self) -> float:
        """Smallest fall of the log time that is an improvement."""
        return log1p(self.tolerance)


class Decision(Struct, frozen=True):
    """A verdict on one ratio. All changes are of throughput: negative is slower.

    `possible` tells what would be said if identical runs did not differ: the lower of the two tiers. `min_detectable`
    is the slowdown that would be found in nine of ten cases, `run_noise_max` the largest run-to-run deviation under
    which the verdict stands (None where none was reached), `steps_needed` and `runs_needed` what would settle it.
    """

    answer: Answer
    possible: Answer
    change: float
    interval: tuple[float, float]
    min_detectable: float
    p: float
    run_noise_max: float | None
    steps_needed: int | None
    runs_needed: int | None
    why: str


def decide(found: Estimate, policy: Policy, *, runs_se: float | None = None, df: float | None = None) -> Decision:
    """Judge an estimate; `runs_se` replaces the assumed run-to-run error where several baselines measured it."""
    within = max(found.se, 1e-6)
    se = max(within, runs_se) if runs_se is not None else hypot(within, sqrt(2) * policy.run_noise)
    df = found.df if df is None else df
    critical = t_quantile(policy.alpha, df)
    answer = _answer(found, (se, df), policy)
    possible = _answer(found, (within, found.df), policy)
    low, high = found.log_ratio - critical * se, found.log_ratio + critical * se
    reach = critical + t_quantile(_POWER_TAIL, df)
    settled = answer in {Answer.REGRESSION, Answer.IMPROVEMENT}
    return Decision(
        answer=answer,
        possible=possible,
        change=exp(-found.log_ratio) - 1,
        interval=(_throughput(high), _throughput(low)),
        min_detectable=max(-_throughput(reach * se), policy.tolerance),
        p=t_tail(abs(found.log_ratio) / se, df),
        run_noise_max=sqrt(max(0.0, (found.log_ratio / critical) ** 2 - within**2) / 2) if settled else None,
        steps_needed=None if answer is not Answer.INCONCLUSIVE else _steps(found, reach, policy),
        runs_needed=None if answer is not Answer.INCONCLUSIVE else _runs(found, reach, policy),
        why=_why(found, answer, possible),
    )


def _throughput(log_time: float) -> float:
    return exp(-max(-700.0, min(700.0, log_time))) - 1


def _answer(found: Estimate, error: tuple[float, float], policy: Policy) -> Answer:
    """Judge an estimate whose standard error and degrees of freedom are `error`."""
    mu, (se, df) = found.log_ratio, error
    if found.effective < _FEWEST_EFFECTIVE and found.count > 30:
        return Answer.INCONCLUSIVE
    significant = abs(mu) > t_quantile(policy.alpha, df) * se
    if significant and mu >= policy.slower:
        return Answer.REGRESSION
    if significant and -mu >= policy.faster:
        return Answer.IMPROVEMENT
    reach = t_quantile(policy.alpha_same, df) * se
    slack = _target(policy)
    return Answer.NO_CHANGE if -slack < mu - reach and mu + reach < slack else Answer.INCONCLUSIVE


def _why(found: Estimate, answer: Answer, possible: Answer) -> str:
    if answer is not Answer.INCONCLUSIVE:
        return ""
    if found.effective < _FEWEST_EFFECTIVE and found.count > 30:
        return f"the noise is too correlated: {found.count} records are worth {found.effective:.1f} independent ones"
    if possible in {Answer.REGRESSION, Answer.IMPROVEMENT}:
        return "identical runs may differ as much as that"
    return "the noise is too large for so few records"


def _target(policy: Policy) -> float:
    """Log change that a comparison should be able to see: twice the tolerance, or the slowdown allowed."""
    return max(2 * log1p(policy.tolerance), policy.slower)


def _steps(found: Estimate, reach: float, policy: Policy) -> int | None:
    """Records per run that would show the target in nine of ten cases; None when run-to-run noise alone hides it."""
    left = (_target(policy) / reach) ** 2 - 2 * policy.run_noise**2
    return max(found.count + 1, ceil(found.sd_long**2 / left)) if left > 0 else None


def _runs(found: Estimate, reach: float, policy: Policy) -> int | None:
    """Runs of each kind that would show the target at the length they have; None when one of each is enough."""
    alone = hypot(found.se, sqrt(2) * policy.run_noise)
    needed = (alone * reach / _target(policy)) ** 2
    return max(2, ceil(needed)) if needed < inf else None
