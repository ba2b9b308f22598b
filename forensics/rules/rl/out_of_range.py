"""RLX008 rl-out-of-range: a metric of reinforcement learning stays outside its known range.

What it detects: every other row of the table of ranges: a gradient norm above 10 or one that swings wildly, an entropy
above 1 after 50 steps, a clipped share above 0.3, and alignment, diversity and flow-matching loss of EBFT.

Why it matters: each of them precedes a policy that stops learning or breaks.

How it decides: the running median of 10 records is beyond the red flag in 80 % of the last 20; for a trend, Kendall's
test over equal parts of the last half; a gradient norm counts too where more than 5 % of the records of the last half
are above 10. An alignment below 0.3 is excused while it rises. Beyond the healthy range but short of the red flag is a
warning of low confidence. An entropy above 1 counts when it rose to there or the reward did not rise: a large
model of a wide vocabulary may start there and learn.
Gradient norms are known to depend on the model: one below the flag is never judged.

What else looks like this: single spikes; a metric of another unit under the same name.

What to do next: what the row says: mostly a lower learning rate, max_grad_norm 1.0, a lower temperature.

References: axolotl, GRPO and EBFT training references.

Example:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    grad_norm: 0.5*4 14.0*24
    ```
    => RLX008 warning confidence=medium step=5 step_lo=4 cause=grad_norm first=0.5000 last=14.00
Not this:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    grad_norm: 0.5*5 40.0 0.5*11 40.0 0.5*10
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.rl.ranges import Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import rl_series
from forensics.knowledge.ranges import ranges
from forensics.rules.kit import Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of, outside_of

#: Quantities whose healthy range depends on the model too much for a remark short of the red flag.
_ONLY_RED = frozenset(("grad_norm", "entropy"))


#: An entropy that ends so many times higher than it began has risen; noise and warm-up move it by less than a fifth.
_ROSE = 1.5


@rule("learning", needs=("metrics",), config=Persistence)
def out_of_range(run: Run, cfg: Persistence) -> Findings:
    """Judge each series by its rows of the table; of one quantity the first row that holds is told."""
    rows = [r for r in ranges().values() if r.rule == "RLX008"]
    every = rl_series(run, *{r.quantity for r in rows}, "reward", "reward_fn")
    rewards = rewards_of(every)
    told: set[str] = set()
    for row in rows:
        for series in every:
            if series.quantity != row.quantity or series.raw_name in told:
                continue
            hit = judge(series, row, cfg)
            if hit is None or (row.quantity in _ONLY_RED and not hit.red):
                continue
            if row.row == "entropy_high" and risen(rewards) is not False and hit.last < _ROSE * hit.first:
                continue
            told.add(series.raw_name)
            yield finding_of(hit, Severity.WARNING, cause=row.row) if hit.red else outside_of(hit, cause=row.row)
