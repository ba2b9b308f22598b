"""RLX001 rl-reward-zero: the reward stays at zero, so nothing can be learned.

What it detects: a mean reward, or that of one reward function, that is exactly zero for more than 20 steps: from the
start, or for good after it was not.

Why it matters: every answer looks equally good; the run burns its budget and changes nothing, or only drifts.

How it decides: each of the last 20 records is zero and they span more than 20 steps. A reward that becomes zero counts
only when most records before were not zero, for a sparse reward is zero often. A spread of the same reward that is not
zero contradicts, as for a reward brought to mean zero. One function at zero beside others that pay is a warning, and
only a remark when its name is that of a penalty, which rests at zero when nothing is wrong.

What else looks like this: a penalty function; a normalised reward; a task so hard that a success is seen once in
thousands of answers.

What to do next: call the reward function outside of the training with an answer known to be right; log the completions
and read some; check that the dataset's columns reach the function and that the sampler serves the model of the
configuration.

References: axolotl, GRPO training reference; TRL documentation, GRPO trainer, logged metrics.

Example:
    ```metrics
    step: 1..21
    rewards/exact/mean: 0.0
    ```
    => RLX001 error confidence=high step=1 cause=reward_zero first=0.000 last=0.000
Not this:
    ```metrics
    step: 1..21
    rewards/exact/mean: 0.0*4 0.125 0.0*4 0.125 0.0*4 0.125 0.0*4 0.125 0.0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

from forensics.analyses.rl.ranges import Hit, Persistence, judge
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.kit import Confidence, Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of

#: Before a reward became zero for good, this share of its records must have been something else.
_PAID_BEFORE = 0.5


@rule("learning", needs=("metrics",), config=Persistence)
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
        yield replace(finding_of(hits[whole], Severity.ERROR, cause="reward_zero"), confidence=Confidence.HIGH)
        return
    for name, hit in hits.items():
        penalty = stands_for("penalty", name.lower())
        note = "a penalty is zero when nothing is wrong" if penalty else "other rewards are paid"
        yield finding_of(hit, Severity.INFO if penalty else Severity.WARNING, cause="reward_zero", note=note)


def _zero(series: RlSeries, every: tuple[RlSeries, ...], cfg: Persistence) -> Hit | None:
    hit = judge(series, range_of("reward_zero" if series.quantity == "reward" else "reward_fn_zero"), cfg)
    if hit is None or not hit.red or _spread(series, every, cfg):
        return None
    before = hit.rows.head(hit.onset)["value"]
    if hit.onset and float((before.abs() > 1e-9).sum()) < _PAID_BEFORE * before.len():
        return None
    steps = hit.rows["at"].slice(hit.onset).drop_nulls()
    if not steps.len() or steps[-1] - steps[0] < cfg.last:
        return None
    return hit


def _spread(series: RlSeries, every: tuple[RlSeries, ...], cfg: Persistence) -> bool:
    """Whether the same reward is known to differ between answers, although its mean is zero."""
    if series.quantity == "reward_fn":
        own = {series.raw_name[: -len("mean")] + "std"}
        others = [s for s in every if s.raw_name in own]
    else:
        others = [s for s in every if s.quantity in {"reward_std", "reward_max", "reward_min"}]
    return any(bool((s.finite.tail(cfg.last)["value"].abs() > 1e-9).any()) for s in others)
