"""Rewards: zero, falling, or the same for all answers."""

from __future__ import annotations

from forensics.analyses.rl.episodes import Episodes, Fall, fall_of
from forensics.analyses.rl.ranges import Hit, Persistence, gain_of, hit_of, judge, rewards_of, risen
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import Range, range_of, ranges
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.kit import Confidence, Finding, Findings, Run, Severity, at_step, number, onset_at, proof, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median
from forensics.values import replace

#: Before a reward became zero for good, this share of its records must have been something else.
_PAID_BEFORE = 0.5


@rule("RLX001 rl-reward-zero", "metrics")
def reward_zero(run: Run, cfg: Persistence) -> Findings:
    """Find the reward that stays zero; the total reward first, then single functions."""
    every = rl_series(run, "reward", "reward_fn", "reward_std", "reward_fn_std", "reward_max", "reward_min")
    rewards = [s for s in every if s.quantity in {"reward", "reward_fn"}]
    hits = {s.raw_name: hit for s in rewards if (hit := _zero(s, every, cfg)) is not None}
    total = [s.raw_name for s in rewards if s.quantity == "reward"]
    whole = next((name for name in total if name in hits), None)
    if whole is None and not total and rewards and len(hits) == len(rewards):
        whole = rewards[0].raw_name
    if whole is not None:
        zero = finding_of(hits[whole], Severity.ERROR, cause="reward_zero")
        yield zero if hits[whole].few else replace(zero, confidence=Confidence.HIGH)
        return
    for name, hit in hits.items():
        penalty = stands_for("penalty", name.lower())
        note = "a penalty is zero when nothing is wrong" if penalty else "other rewards are paid"
        yield finding_of(hit, Severity.INFO if penalty else Severity.WARNING, cause="reward_zero", note=note)


def _zero(series: RlSeries, every: tuple[RlSeries, ...], cfg: Persistence) -> Hit | None:
    hit = judge(series, range_of("reward_zero" if series.quantity == "reward" else "reward_fn_zero"), cfg)
    if hit is None or not hit.red or _differs(series, every, cfg.few if hit.few else cfg.last):
        return None
    before = hit.rows.head(hit.onset)["value"]
    if hit.onset and float((before.abs() > 1e-9).sum()) < _PAID_BEFORE * before.len():
        return None
    if hit.few:
        return hit
    at = hit.rows["at"].slice(hit.onset)
    steps = at.drop_nulls()
    span = steps[-1] - steps[0] if steps.len() else at.len() - 1  # a record without a step is of one at least
    return hit if span >= cfg.last else None


def _differs(series: RlSeries, every: tuple[RlSeries, ...], last: int) -> bool:
    """Whether the same reward is known to differ between answers, although its mean is zero."""
    if series.quantity == "reward_fn":
        own = {series.raw_name[: -len("mean")] + "std"}
        others = [s for s in every if s.raw_name in own]
    else:
        others = [s for s in every if s.quantity in {"reward_std", "reward_max", "reward_min"}]
    return any(bool((s.finite.tail(last)["value"].abs() > 1e-9).any()) for s in others)


#: A reward that starts here has no room to rise.
_FULL = 0.95
#: Standard errors that a gain may be larger than measured, and the share of the reward below which it is none: over
#: 100 steps a run that learns gains a half or more (axolotl, GRPO training reference: from near 0 to 0.3 to 0.8).
_SURE, _LEAST_GAIN = 2.0, 0.2


@rule("RLX009 rl-reward-trend", "metrics")
def reward_trend(run: Run, cfg: Persistence) -> Findings:
    """Find a total reward that falls or never rose."""
    row = range_of("reward_trend")
    levels = [row for row in ranges().values() if row.rule.startswith("RLX") and row.red is not None]
    every = rl_series(run, "reward", *(row.quantity for row in levels))
    for series in (s for s in every if s.quantity == "reward"):
        hit = judge(series, row, cfg)
        if hit is not None and hit.last < hit.first:
            yield finding_of(hit, Severity.WARNING, cause="reward_falls")
        elif hit is None and (fall := fall_of(series, run.threshold(Episodes))) is not None and fall.rose:
            yield _lost(fall)
        elif hit is None and _flat(series, row.from_step, cfg):
            flat = hit_of(series, range_of("reward_flat"), 0, red=False, share=0.0)
            explained = any(_red(other, row, cfg) for row in levels for other in every if other is not series)
            severity = Severity.WARNING if _level(series) and not explained else Severity.INFO
            yield replace(finding_of(flat, severity, cause="reward_flat"), confidence=Confidence.LOW)


def _lost(fall: Fall) -> Finding:
    """The finding of a reward that had risen, and fell to stay down."""
    rows = fall.series.finite
    start, before = rows.row(fall.onset, named=True), rows.row(max(0, fall.onset - 1), named=True)
    return reward_trend.finding(
        f"{fall.series.raw_name} fell from {number(fall.best)} to {number(fall.last)} from {at_step(start['at'])} on",
        f"it stays down over the last of {rows.height} records, after it had risen",
        proof(before, start, rows.row(-1, named=True)),
        onset_at(start, before["at"] if fall.onset else None),
        severity="warning",
        confidence="medium",
        cause="reward_falls",
        numbers={"first": fall.best, "last": fall.last},
    )


def _flat(series: RlSeries, from_step: int, cfg: Persistence) -> bool:
    """Whether a long series that could have risen has not; one of nothing but zeros is another rule's."""
    rows = series.finite
    last = rows["at"].max()
    if rows.height < 2 * cfg.last or not isinstance(last, int) or last <= from_step:
        return False
    values = rows["value"]
    return 0 < median(values.abs()) < _FULL and risen([series]) is False


def _red(series: RlSeries, row: Range, cfg: Persistence) -> bool:
    """Whether another quantity raises its red flag, which is nearer to the cause than a reward that does not rise."""
    hit = judge(series, row, cfg)
    return hit is not None and hit.red


def _level(series: RlSeries) -> bool:
    """Whether the noise leaves no room for a gain that is worth the steps."""
    gain = gain_of(series)
    return gain is not None and gain[0] + _SURE * gain[1] < _LEAST_GAIN * median(series.finite["value"].abs())


#: A mean reward from which the task is taken for solved (axolotl, GRPO training reference: rewards reach 0.3 to 0.8).
_SOLVED = 0.95
#: A task that is solved before this share of the records leaves half of the run without anything to learn from.
_WASTED = 0.5


@rule("RLX002 rl-no-advantage", "metrics")
def no_advantage(run: Run, cfg: Persistence) -> Findings:
    """Find groups of answers that all get one reward, step after step."""
    every = rl_series(run, "reward", "reward_fn", "reward_std", "frac_zero_std")
    hit = _worst(every, cfg)
    if hit is None:
        return
    rewards = rewards_of(every)
    if rewards and all(median(s.finite.tail(cfg.last)["value"]) >= _SOLVED for s in rewards):
        long = hit.onset <= _WASTED * hit.rows.height
        note = "the reward is near one: the task is solved"
        yield finding_of(hit, Severity.WARNING if long else Severity.INFO, cause="task_exhausted", note=note)
    else:
        yield finding_of(hit, Severity.WARNING, cause="no_advantage")


def _worst(every: tuple[RlSeries, ...], cfg: Persistence) -> Hit | None:
    """The worst that the table says of these series."""
    rows = map(range_of, ("frac_zero_std", "reward_std_zero", "frac_zero_std_high"))
    hits = (judge(series, row, cfg) for row in rows for series in every)
    return next((hit for hit in hits if hit is not None and hit.red), None)
