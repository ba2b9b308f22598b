"""RLX002 rl-no-advantage: all answers to a prompt get one reward, so no update is made.

What it detects: a spread of rewards within a group that is always zero, or a share of groups without spread that is
always one.

Why it matters: the advantage of an answer is its reward against the others of its group; where all are equal there is
no gradient, and a loss and gradient norm of zero look like calm.

How it decides: each of the last 20 records is so. A share of groups without spread that only stays above 0.8 is a
warning too: most of what is sampled teaches nothing. Where the reward is near its maximum of one the task is exhausted:
a warning where half of the records or more came after that, and a remark at the end of a run.

What else looks like this: single batches without advantage, which are normal; a task that the model has solved.

What to do next: mix prompts of another difficulty, raise the number of generations or the temperature, or grade the
reward more finely.

References: axolotl, GRPO training reference; TRL documentation, GRPO trainer, logged metrics.

Example:
    ```metrics
    step: 1..21
    frac_reward_zero_std: 1.0
    ```
    => RLX002 warning confidence=medium step=1 cause=no_advantage first=1.000 last=1.000
Not this:
    ```metrics
    step: 1..24
    frac_reward_zero_std: (0.25 0.5 1.0)*8
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.rl.ranges import Hit, Persistence, judge, rewards_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median

#: A mean reward from which the task is taken for solved (axolotl, GRPO training reference: rewards reach 0.3 to 0.8).
_SOLVED = 0.95
#: A task that is solved before this share of the records leaves half of the run without anything to learn from.
_WASTED = 0.5


@rule("learning", needs=("metrics",), config=Persistence)
def no_advantage(run: Run, cfg: Persistence) -> Findings:
    """Find groups of answers that all get one reward, step after step."""
    every = rl_series(run, "reward", "reward_fn", "reward_std", "frac_zero_std")
    hit = _hit(every, cfg)
    if hit is None:
        return
    rewards = rewards_of(every)
    solved = bool(rewards) and all(median(s.finite.tail(cfg.last)["value"]) >= _SOLVED for s in rewards)
    if solved:
        long = hit.onset <= _WASTED * hit.rows.height
        note = "the reward is near one: the task is solved"
        yield finding_of(hit, Severity.WARNING if long else Severity.INFO, cause="task_exhausted", note=note)
    else:
        yield finding_of(hit, Severity.WARNING, cause="no_advantage")


def _hit(every: tuple[RlSeries, ...], cfg: Persistence) -> Hit | None:
    """The worst that the table says of these series."""
    for row in map(range_of, ("frac_zero_std", "reward_std_zero", "frac_zero_std_high")):
        for series in every:
            hit = judge(series, row, cfg) if series.quantity == row.quantity else None
            if hit is not None and hit.red:
                return hit
    return None
