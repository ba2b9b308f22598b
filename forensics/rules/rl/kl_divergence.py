"""RLX004 rl-kl-divergence: the policy runs away from its reference.

What it detects: a KL divergence to the reference model that stays above 2 nats a token, or that shoots up late in the
run.

Why it matters: far from its reference a policy exploits the reward instead of solving the task, and loses what it knew.

How it decides: the running median of 10 records is above 2 in 80 % of the last 20; an error unless the reward clearly
rose. Or the median of the last fifth is five times that of the middle fifth, above the healthy range and on a
proven rise: a warning. One that stays above the healthy range and below 2 is a warning of low confidence. A KL that is
zero, or not logged, is that of a run without a KL term. A KL summed over the answer, as some trainers log it, grows
with the length and is judged by its growth alone.

What else looks like this: another estimator of the KL (k1, k2, k3 differ); a slow growth, which is normal.

What to do next: restart before the rise with a higher KL coefficient or a lower learning rate.

References: axolotl, GRPO training reference; Schulman 2020, "Approximating KL Divergence".

Example:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    kl: 0.125*3 2.875..5.875/0.125
    reward: (0.25 0.125)*14
    ```
    => RLX004 error confidence=medium step=4 step_lo=3 cause=kl_divergence first=0.1250 last=5.625
Not this:
    ```metrics
    step: 1..28
    completions/mean_length: 200 -*27
    kl: 0.0..0.08/0.01 4.0 0.1..0.27/0.01
    ```
    => nothing
Not this:
    ```metrics
    step: 1..20
    completions/mean_length: 200 -*19
    kl: 0.0
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.rl.ranges import Hit, Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of, outside_of
from forensics.stats.spread import median
from forensics.stats.trend import trend_of

#: The last fifth is this many times the middle fifth (axolotl, GRPO training reference, expected trends).
_GROWTH = 5.0


@rule("learning", needs=("metrics",), config=Persistence)
def kl_divergence(run: Run, cfg: Persistence) -> Findings:
    """Find a KL divergence that stays large or shoots up."""
    every = rl_series(run, "kl", "kl_sequence", "reward", "reward_fn")
    rose = risen(rewards_of(every))
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
        elif hit is not None and hit.last > hit.row.hi:
            yield outside_of(hit, cause="kl_high")


def _shooting(series: RlSeries, cfg: Persistence) -> Hit | None:
    row, rows = range_of("kl_high"), series.finite
    fifth = rows.height // 5
    if fifth < cfg.window:
        return None
    values = rows["value"]
    middle, last = median(values.slice(2 * fifth, fifth)), median(values.tail(fifth))
    floor = row.hi if series.quantity == "kl" else 0.0
    trend = trend_of(values.tail(3 * fifth))
    if middle <= 0 or last < _GROWTH * middle or last <= floor or trend is None or trend.z < cfg.trend_z:
        return None
    onset = int((values > (middle * last) ** 0.5).arg_true()[0])
    return Hit(row, series, rows, red=False, onset=onset, first=middle, last=last, share=1.0)
