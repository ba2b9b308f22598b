"""RLX004 rl-kl-divergence: the policy runs away from its reference.

What it detects: a KL divergence to the reference model that stays above 2 nats a token, or that shoots up late in the
run.

Why it matters: far from its reference a policy exploits the reward instead of solving the task, and loses what it knew.

How it decides: the running median of 10 records is above 2 in 80 % of the last 20; an error unless the reward clearly
rose. Or the median of the last fifth is five times that of the middle fifth, above the healthy range and on a
proven rise: a warning. A KL that is zero, or not logged, is that of a run without a KL term. A KL summed over the
answer, as some trainers log it, grows with the length and is judged by its growth alone.

What else looks like this: another estimator of the KL (k1, k2, k3 differ); a slow growth, which is normal.

What to do next: restart before the rise with a higher KL coefficient or a lower learning rate.

References: axolotl, GRPO training reference; Schulman 2020, "Approximating KL Divergence".

Example:
    ```metrics seq,step,name,value
    0,1,completions/mean_length,200
    0,1,kl,0.125
    0,1,reward,0.25
    1,2,kl,0.125
    1,2,reward,0.125
    2,3,kl,0.125
    2,3,reward,0.25
    3,4,kl,2.875
    3,4,reward,0.125
    4,5,kl,3.0
    4,5,reward,0.25
    5,6,kl,3.125
    5,6,reward,0.125
    6,7,kl,3.25
    6,7,reward,0.25
    7,8,kl,3.375
    7,8,reward,0.125
    8,9,kl,3.5
    8,9,reward,0.25
    9,10,kl,3.625
    9,10,reward,0.125
    10,11,kl,3.75
    10,11,reward,0.25
    11,12,kl,3.875
    11,12,reward,0.125
    12,13,kl,4.0
    12,13,reward,0.25
    13,14,kl,4.125
    13,14,reward,0.125
    14,15,kl,4.25
    14,15,reward,0.25
    15,16,kl,4.375
    15,16,reward,0.125
    16,17,kl,4.5
    16,17,reward,0.25
    17,18,kl,4.625
    17,18,reward,0.125
    18,19,kl,4.75
    18,19,reward,0.25
    19,20,kl,4.875
    19,20,reward,0.125
    20,21,kl,5.0
    20,21,reward,0.25
    21,22,kl,5.125
    21,22,reward,0.125
    22,23,kl,5.25
    22,23,reward,0.25
    23,24,kl,5.375
    23,24,reward,0.125
    24,25,kl,5.5
    24,25,reward,0.25
    25,26,kl,5.625
    25,26,reward,0.125
    26,27,kl,5.75
    26,27,reward,0.25
    27,28,kl,5.875
    27,28,reward,0.125
    ```
    => RLX004 error confidence=medium step=4 step_lo=3 cause=kl_divergence first=0.1250 last=5.625
Not this:
    ```metrics seq,step,name,value
    0,1,completions/mean_length,200
    0,1,kl,0.0
    1,2,kl,0.01
    2,3,kl,0.02
    3,4,kl,0.03
    4,5,kl,0.04
    5,6,kl,0.05
    6,7,kl,0.06
    7,8,kl,0.07
    8,9,kl,0.08
    9,10,kl,4.0
    10,11,kl,0.1
    11,12,kl,0.11
    12,13,kl,0.12
    13,14,kl,0.13
    14,15,kl,0.14
    15,16,kl,0.15
    16,17,kl,0.16
    17,18,kl,0.17
    18,19,kl,0.18
    19,20,kl,0.19
    20,21,kl,0.2
    21,22,kl,0.21
    22,23,kl,0.22
    23,24,kl,0.23
    24,25,kl,0.24
    25,26,kl,0.25
    26,27,kl,0.26
    27,28,kl,0.27
    ```
    => nothing
Not this:
    ```metrics seq,step,name,value
    0,1,completions/mean_length,200
    0,1,kl,0.0
    1,2,kl,0.0
    2,3,kl,0.0
    3,4,kl,0.0
    4,5,kl,0.0
    5,6,kl,0.0
    6,7,kl,0.0
    7,8,kl,0.0
    8,9,kl,0.0
    9,10,kl,0.0
    10,11,kl,0.0
    11,12,kl,0.0
    12,13,kl,0.0
    13,14,kl,0.0
    14,15,kl,0.0
    15,16,kl,0.0
    16,17,kl,0.0
    17,18,kl,0.0
    18,19,kl,0.0
    19,20,kl,0.0
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.rl.levels import median, trend_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.model import Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.rl._ranges import Hit, Persistence, judge, range_of
from forensics.rules.rl._words import finding_of, risen
from forensics.store.run import Run

#: The last fifth is this many times the middle fifth (axolotl, GRPO training reference, expected trends).
_GROWTH = 5.0


@rule("RLX004", shape=Shape.LEARNING, needs=("metrics",), config=Persistence)
def kl_divergence(run: Run, cfg: Persistence | None = None) -> Iterator[Finding]:
    """Find a KL divergence that stays large or shoots up."""
    cfg = cfg or Persistence()
    every = rl_series(run, "kl", "kl_sequence", "reward", "reward_fn")
    total = [s for s in every if s.quantity == "reward"]
    rose = risen(total or [s for s in every if s.quantity == "reward_fn"])
    for series in every:
        if series.quantity not in {"kl", "kl_sequence"}:
            continue
        hit = judge(series, range_of("kl_high"), cfg) if series.quantity == "kl" else None
        if hit is not None and hit.red:
            note = "the reward rose meanwhile" if rose else "the reward did not rise" if rose is False else ""
            severity = Severity.WARNING if rose else Severity.ERROR
            yield finding_of(hit, severity, cause="kl_divergence", note=note)
        elif (shot := _shooting(series, cfg)) is not None:
            note = "the last fifth is five times the middle fifth"
            yield finding_of(shot, Severity.WARNING, cause="kl_divergence", note=note)
        elif hit is not None and hit.last > (hit.row.hi or 0.0):
            yield finding_of(hit, Severity.INFO, cause="kl_high")


def _shooting(series: RlSeries, cfg: Persistence) -> Hit | None:
    row, rows = range_of("kl_high"), series.finite
    fifth = rows.height // 5
    if fifth < cfg.window:
        return None
    values = rows["value"]
    middle, last = median(values.slice(2 * fifth, fifth)), median(values.tail(fifth))
    floor = (row.hi or 0.0) if series.quantity == "kl" else 0.0
    trend = trend_of(values.tail(3 * fifth))
    if middle <= 0 or last < _GROWTH * middle or last <= floor or trend is None or trend.z < cfg.trend_z:
        return None
    onset = int((values > (middle * last) ** 0.5).arg_true()[0])
    return Hit(row, series, rows, red=False, onset=onset, first=middle, last=last, share=1.0)
