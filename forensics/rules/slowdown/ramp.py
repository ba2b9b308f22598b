"""SLO003 step-time-ramp: steps became slower and slower, without a jump.

What it detects: a rise of the time per step that is spread over many steps and lasts to the end.

Why it matters: what grows slowly is rarely noticed while it can be stopped, and it goes on.

How it decides: one ramp between two knots explains the series better than any levels do, by 12 in twice the
log-likelihood after a charge for parameters (BIC), and rises by 5 % or more beyond the noise that it leaves. It begins
where the series leaves its past. An error where a step takes `grave` times what it did, a warning from `mild` on.

What else looks like this: a curriculum of longer sequences that is not logged as tokens; generations that grow longer
in RL.

What to do next: look for something that grows with the step number.

References: Schwarz, "Estimating the Dimension of a Model" (1978); Page, "Continuous Inspection Schemes" (1954).

Example:
    ```metrics
    step: 1..66
    step_time: 0.4963 0.4976 0.4972 0.5033 0.4954 0.505 0.4985 0.5046 0.5002 0.4988 0.4927 0.4966 0.4987 0.5033 0.5012
        0.4965 0.5021 0.505 0.4993 0.4978 0.498 0.5122 0.5191 0.5198 0.5351 0.5392 0.5464 0.5664 0.5732 0.5735 0.5875
        0.5995 0.6023 0.6152 0.6301 0.6248 0.6485 0.6617 0.6708 0.6692 0.6914 0.6943 0.7157 0.7276 0.7365 0.7411
        0.7544 0.7777 0.7766 0.8002 0.8133 0.82 0.8558 0.8497 0.8815 0.8593 0.8712 0.9143 0.9259 0.932 0.9495 0.9321
        0.944 0.9402 0.9479 0.9585
    ```
    => SLO003 error confidence=medium step=22 step_lo=21 cause=slow_ramp ratio=1.768 z=16.88
Not this: a level without a trend
    ```metrics
    step: 1..24
    step_time: 0.5005 0.5037 0.4931 0.4957 0.5011 0.4972 0.5128 0.4913 0.5193 0.4903 0.5107 0.4923 0.5168 0.5014 0.504
        0.5075 0.4937 0.4897 0.4801 0.5124 0.4931 0.4941 0.4997 0.5203
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.pace.account import Gravity, Paced, gravest
from forensics.analyses.pace.change import Change
from forensics.rules.kit import Finding, Findings, Run, rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of, severity_of


@rule("slowdown", needs=("metrics", "checkpoints", "progress"), config=Gravity, cause="slow_ramp")
def step_time_ramp(run: Run, cfg: Gravity) -> Findings:
    """Find the clock that lost most along a ramp."""
    found = gravest(run, cfg, "ramp")
    if found is not None:
        yield _finding(*found, cfg)


def _finding(one: Paced, change: Change, cfg: Gravity) -> Finding:
    return step_time_ramp.finding(
        f"the time per {one.clock.unit} climbed to {change.ratio:.2f} times what it was, "
        f"from step {one.at(change.first)} on",
        measured(one, change),
        evidence_of(one, change),
        onset_of(one, change),
        severity=severity_of(one, change, cfg),
        confidence=confidence_of(one, change),
        numbers={"before_s": change.before, "ratio": change.ratio, "z": change.z, "lost": one.lost(change)},
        next=("forensics memory RUN",),
    )
