"""RLX003 rl-entropy-collapse: the policy gives nearly the same answer every time.

What it detects: an entropy that stays below 0.01 nats a token, or that fell to a fifth or less within a tenth of the
run and stayed there.

Why it matters: a policy without entropy explores nothing; what it has not found by then it will not find.

How it decides: the running median of 10 records is below 0.01 in 80 % of the last 20, after it was higher. It is an
error when the reward did not rise meanwhile, else a warning. A slow fall is what learning looks like. An entropy that
is exactly zero in every record was not computed, and one below zero is of continuous actions, not of tokens. Entropies
of supervised fine-tuning are not looked at.

What else looks like this: a solved task with one right answer; a trainer that logs zero for an entropy that it does not
compute.

What to do next: restart before the collapse with a temperature of 0.8 to 1.0, a lower learning rate, a KL term or more
generations.

References: axolotl, GRPO training reference; Yu et al. 2025, DAPO (clip-higher).

Example:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    entropy: 0.5*4 0.004*24
    reward: (0.25 0.125)*14
    ```
    => RLX003 error confidence=medium step=5 step_lo=4 cause=entropy_collapse first=0.5000 last=0.004000
Not this:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    entropy: 0.5..0.1625/-0.0125
    ```
    => nothing
Not this:
    ```metrics
    step: 1..24
    completions/mean_length: 200 -*23
    entropy: 0.0
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.running import running_median
from forensics.stats.spread import median

#: A fall by this factor within this share of the run is abrupt (axolotl, GRPO training reference, expected trends).
_FALL = 5.0
_WITHIN = 0.1


@rule("learning", needs=("metrics",), config=Persistence)
def entropy_collapse(run: Run, cfg: Persistence) -> Findings:
    """Find an entropy that vanished."""
    every = rl_series(run, "entropy", "reward", "reward_fn")
    rose = risen(rewards_of(every))
    words = {None: "no reward is logged", True: "the reward rose meanwhile", False: "the reward did not rise"}[rose]
    for series in every:
        values = series.finite["value"]
        if series.quantity != "entropy" or not (values > 0).any() or (values < 0).any():
            continue
        hit = judge(series, range_of("entropy_low"), cfg)
        if hit is not None and hit.red:
            fell = hit.onset > 0 and rose is False
            severity = Severity.ERROR if fell else Severity.WARNING
            yield finding_of(hit, severity, cause="entropy_collapse", note=words)
        elif (sudden := _abrupt(series, cfg)) is not None:
            note = f"it fell to a fifth or less within a tenth of the run; {words}"
            yield finding_of(sudden, Severity.WARNING, cause="entropy_collapse", note=note)
        elif hit is not None and hit.last < hit.row.lo:
            yield finding_of(hit, Severity.INFO, cause="entropy_low", note=words)


def _abrupt(series: RlSeries, cfg: Persistence) -> Hit | None:
    """A fall by a factor within a short part of the run, below the healthy range and not made up since."""
    row, rows = range_of("entropy_low"), series.finite
    if rows.height < 2 * cfg.last:
        return None
    medians = running_median(rows["value"], cfg.window)
    lag = max(cfg.window, round(rows.height * _WITHIN))
    fell = (medians * _FALL < medians.shift(lag)).fill_null(value=False)
    end = median(rows["value"].tail(cfg.last))
    places = fell.arg_true()
    if not places.len() or end >= row.lo:
        return None
    at = int(places[0])
    if end > medians[at] * 2:
        return None
    start = max(0, at - cfg.window + 1)
    half = pl.Series(rows["value"].slice(start, cfg.window) * _FALL < medians[max(0, at - lag)]).arg_true()
    onset = start + int(half[0]) if half.len() else at
    return Hit(row, series, rows, red=False, onset=onset, first=float(medians[at - lag]), last=end, share=1.0)
