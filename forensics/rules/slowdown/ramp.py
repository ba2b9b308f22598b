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
    ```metrics step,name,value
    1,step_time,0.4963
    2,step_time,0.4976
    3,step_time,0.4972
    4,step_time,0.5033
    5,step_time,0.4954
    6,step_time,0.505
    7,step_time,0.4985
    8,step_time,0.5046
    9,step_time,0.5002
    10,step_time,0.4988
    11,step_time,0.4927
    12,step_time,0.4966
    13,step_time,0.4987
    14,step_time,0.5033
    15,step_time,0.5012
    16,step_time,0.4965
    17,step_time,0.5021
    18,step_time,0.505
    19,step_time,0.4993
    20,step_time,0.4978
    21,step_time,0.498
    22,step_time,0.5122
    23,step_time,0.5191
    24,step_time,0.5198
    25,step_time,0.5351
    26,step_time,0.5392
    27,step_time,0.5464
    28,step_time,0.5664
    29,step_time,0.5732
    30,step_time,0.5735
    31,step_time,0.5875
    32,step_time,0.5995
    33,step_time,0.6023
    34,step_time,0.6152
    35,step_time,0.6301
    36,step_time,0.6248
    37,step_time,0.6485
    38,step_time,0.6617
    39,step_time,0.6708
    40,step_time,0.6692
    41,step_time,0.6914
    42,step_time,0.6943
    43,step_time,0.7157
    44,step_time,0.7276
    45,step_time,0.7365
    46,step_time,0.7411
    47,step_time,0.7544
    48,step_time,0.7777
    49,step_time,0.7766
    50,step_time,0.8002
    51,step_time,0.8133
    52,step_time,0.82
    53,step_time,0.8558
    54,step_time,0.8497
    55,step_time,0.8815
    56,step_time,0.8593
    57,step_time,0.8712
    58,step_time,0.9143
    59,step_time,0.9259
    60,step_time,0.932
    61,step_time,0.9495
    62,step_time,0.9321
    63,step_time,0.944
    64,step_time,0.9402
    65,step_time,0.9479
    66,step_time,0.9585
    ```
    => SLO003 error confidence=medium step=22 step_lo=21 cause=slow_ramp ratio=1.768 z=16.88
Not this: a level without a trend
    ```metrics step,name,value
    1,step_time,0.5005
    2,step_time,0.5037
    3,step_time,0.4931
    4,step_time,0.4957
    5,step_time,0.5011
    6,step_time,0.4972
    7,step_time,0.5128
    8,step_time,0.4913
    9,step_time,0.5193
    10,step_time,0.4903
    11,step_time,0.5107
    12,step_time,0.4923
    13,step_time,0.5168
    14,step_time,0.5014
    15,step_time,0.504
    16,step_time,0.5075
    17,step_time,0.4937
    18,step_time,0.4897
    19,step_time,0.4801
    20,step_time,0.5124
    21,step_time,0.4931
    22,step_time,0.4941
    23,step_time,0.4997
    24,step_time,0.5203
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.pace.account import Gravity, Paced, gravest
from forensics.analyses.pace.change import Change
from forensics.model import Finding, Shape
from forensics.registry import rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of, severity_of
from forensics.store.run import Run


@rule("SLO003", shape=Shape.SLOWDOWN, needs=("metrics", "checkpoints", "progress"), config=Gravity)
def step_time_ramp(run: Run, cfg: Gravity | None = None) -> Iterator[Finding]:
    """Find the clock that lost most along a ramp."""
    cfg = cfg or Gravity()
    found = gravest(run, cfg, "ramp")
    if found is not None:
        yield _finding(*found, cfg)


def _finding(one: Paced, change: Change, cfg: Gravity) -> Finding:
    return Finding(
        rule="SLO003",
        shape=Shape.SLOWDOWN,
        severity=severity_of(one, change, cfg),
        confidence=confidence_of(one, change),
        title=f"seconds per {one.clock.unit} climbed to {change.ratio:.2f} times what they were, "
        f"from step {one.at(change.first)} on",
        because=measured(one, change),
        evidence=evidence_of(one, change),
        onset=onset_of(one, change),
        cause="slow_ramp",
        numbers={"before_s": change.before, "ratio": change.ratio, "z": change.z, "lost": one.lost(change)},
        likely=(
            "something that grows with the run: a list of losses, a log, a replay buffer, a cache",
            "memory that fills up until the allocator or the host swaps",
            "a device that heats up",
        ),
        next=(
            "compare what the process holds early and late: a list or a cache that grows, host memory, open files",
            "forensics memory RUN",
        ),
    )
