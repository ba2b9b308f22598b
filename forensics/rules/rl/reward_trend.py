"""RLX009 rl-reward-trend: the reward falls, or has not risen after a hundred steps.

What it detects: a mean reward with a proven downward trend over the last half of the run, or one that is no higher at
the end than at the start.

Why it matters: the reward is what is optimised: where it falls, the updates do harm.

How it decides: after 100 steps, Kendall's test over 20 equal parts of the last half, with z above 4 and a fall of more
than twice the noise of single records, that ends below the level of the first fifth. A reward need not rise
monotonically. Without a fall, a last fifth that is not above the first by three standard errors is a remark,
and a warning where even a gain two standard errors larger would be less than a fifth of the reward,
unless a red level of another metric, such as a reward function that pays nothing, explains it.

What else looks like this: a curriculum whose prompts get harder; a penalty that is switched on; a solved task.

What to do next: look at KL, entropy and lengths around the fall; restart before it with a lower learning rate.

References: axolotl, GRPO training reference, expected trends; Kendall 1938; Mann 1945.

Example:
    ```metrics
    step: 2..160/2
    completions/mean_length: 200 -*79
    reward: 0.604 0.591 0.594 0.581 0.584 0.571 0.574 0.561 0.564 0.551 0.554 0.541 0.544 0.531 0.534 0.521 0.524
        0.511 0.514 0.501 0.504 0.491 0.494 0.481 0.484 0.471 0.474 0.461 0.464 0.451 0.454 0.441 0.444 0.431 0.434
        0.421 0.424 0.411 0.414 0.401 0.404 0.391 0.394 0.381 0.384 0.371 0.374 0.361 0.364 0.351 0.354 0.341 0.344
        0.331 0.334 0.321 0.324 0.311 0.314 0.301 0.304 0.291 0.294 0.281 0.284 0.271 0.274 0.261 0.264 0.251 0.254
        0.241 0.244 0.231 0.234 0.221 0.224 0.211 0.214 0.201
    ```
    => RLX009 warning confidence=medium step=82 step_lo=80 cause=reward_falls first=0.5625 last=0.2425
Not this:
    ```metrics
    step: 2..160/2
    completions/mean_length: 200 -*79
    reward: 0.12 0.085 0.13 0.095 0.14 0.105 0.15 0.115 0.16 0.125 0.17 0.135 0.18 0.145 0.19 0.155 0.2 0.165 0.21 0.175
        0.22 0.185 0.23 0.195 0.24 0.205 0.25 0.215 0.26 0.225 0.27 0.235 0.28 0.245 0.29 0.255 0.3 0.265 0.31 0.275
        0.32 0.285 0.33 0.295 0.34 0.305 0.35 0.315 0.36 0.325 0.37 0.335 0.38 0.345 0.39 0.355 0.4 0.365 0.41 0.375
        0.42 0.385 0.43 0.395 0.44 0.405 0.45 0.415 0.46 0.425 0.47 0.435 0.48 0.445 0.49 0.455 0.5 0.465 0.51 0.475
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

from forensics.analyses.rl.ranges import Hit, Persistence, gain_of, judge, risen
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import Range, range_of, ranges
from forensics.rules.kit import Confidence, Findings, Run, Severity, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median

#: A reward that starts here has no room to rise.
_FULL = 0.95
#: Standard errors that a gain may be larger than measured, and the share of the reward below which it is none: over
#: 100 steps a run that learns gains a half or more (axolotl, GRPO training reference: from near 0 to 0.3 to 0.8).
_SURE, _LEAST_GAIN = 2.0, 0.2


@rule("learning", needs=("metrics",), config=Persistence)
def reward_trend(run: Run, cfg: Persistence) -> Findings:
    """Find a total reward that falls or never rose."""
    row = range_of("reward_trend")
    levels = [row for row in ranges().values() if row.rule.startswith("RLX") and row.red is not None]
    every = rl_series(run, "reward", *(row.quantity for row in levels))
    for series in (s for s in every if s.quantity == "reward"):
        hit = judge(series, row, cfg)
        if hit is not None and hit.last < hit.first:
            yield finding_of(hit, Severity.WARNING, cause="reward_falls")
        elif hit is None and _flat(series, row.from_step, cfg):
            rows = series.finite
            fifth = max(1, rows.height // 5)
            first, last = median(rows["value"].head(fifth)), median(rows["value"].tail(fifth))
            flat = Hit(range_of("reward_flat"), series, rows, red=False, onset=0, first=first, last=last, share=0.0)
            explained = any(_red(other, row, cfg) for row in levels for other in every if other is not series)
            severity = Severity.WARNING if _level(series) and not explained else Severity.INFO
            yield replace(finding_of(flat, severity, cause="reward_flat"), confidence=Confidence.LOW)


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
    hit = judge(series, row, cfg) if series.quantity == row.quantity else None
    return hit is not None and hit.red


def _level(series: RlSeries) -> bool:
    """Whether the noise leaves no room for a gain that is worth the steps."""
    gain = gain_of(series)
    return gain is not None and gain[0] + _SURE * gain[1] < _LEAST_GAIN * median(series.finite["value"].abs())
