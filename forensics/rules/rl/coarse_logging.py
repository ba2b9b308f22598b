"""RLX011 rl-coarse-logging: a run of reinforcement learning logs less than every step.

What it detects: metrics of reinforcement learning that are logged every second step or less often.

Why it matters: every range and red flag of reinforcement learning is stated per step; a collapse between two records is
seen late, and averages over a window hide single steps.

How it decides: the median distance of the steps of the records is above one. It is a remark: all windows of the other
rules count records and are that much longer.

What else looks like this: a step that counts something else than updates (episodes, samples).

What to do next: set `logging_steps: 1`.

References: axolotl, GRPO training reference.

Example:
    ```metrics
    step: 10..80/10
    frac_reward_zero_std: 0.25
    ```
    => RLX011 info confidence=medium step=10 cause=coarse_logging steps_per_record=10.00
Not this:
    ```metrics
    step: 1..8
    frac_reward_zero_std: 0.25
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.rl.series import rl_series
from forensics.rules.kit import Findings, Onset, Run, proof, rule

_RECORDS = 5


@rule("learning", needs=("metrics",), severity="info", confidence="medium", cause="coarse_logging")
def coarse_logging(run: Run) -> Findings:
    """Tell how many steps lie between two records."""
    quantities = ("reward", "reward_fn", "frac_zero_std", "length", "entropy", "kl")
    longest = max(rl_series(run, *quantities), key=lambda s: s.rows.height, default=None)
    if longest is None or longest.rows.height < _RECORDS:
        return
    every = longest.rows["at"].drop_nulls().unique().sort().diff().median()
    if not isinstance(every, int | float) or every <= 1:
        return
    first = longest.rows.row(0, named=True)
    yield coarse_logging.finding(
        f"one record for every {every:g} steps of reinforcement learning",
        "red flags of reinforcement learning are stated per step; shorter events cannot be seen",
        proof(first, longest.rows.row(1, named=True)),
        Onset(step=first["at"]),
        numbers={"steps_per_record": float(every)},
    )
