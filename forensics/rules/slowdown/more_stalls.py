"""SLO030 stalls-more-frequent: single slow steps became more frequent from some point on.

What it detects: a change of the rate of stalls: most steps take what they did, and more of them than before take far
longer.

Why it matters: the median does not move, so no dashboard of medians shows it, and the run still costs more.

How it decides: pauses begin where none is seen before, though as many at random places would have left a trace there,
or where those that follow keep a distance in steps. Or starts of slow runs are scanned for one change of their rate:
twice the log-likelihood ratio above 28. The time they add is 5 % of a step or more: an error where a step takes `grave`
times what it did on average, a warning from `mild` on.

What else looks like this: a part of the data with longer samples.

What to do next: time the data loader apart from the step.

References: Kulldorff, "A Spatial Scan Statistic" (1997).

Example:
    ```metrics step,name,value
    1,step_time,0.495
    2,step_time,0.494
    3,step_time,0.503
    4,step_time,0.499
    5,step_time,0.509
    6,step_time,0.504
    7,step_time,0.498
    8,step_time,0.504
    9,step_time,0.501
    10,step_time,0.497
    11,step_time,0.505
    12,step_time,0.497
    13,step_time,0.51
    14,step_time,0.505
    15,step_time,0.498
    16,step_time,0.499
    17,step_time,0.505
    18,step_time,0.493
    19,step_time,0.5
    20,step_time,0.493
    21,step_time,0.501
    22,step_time,0.5
    23,step_time,0.507
    24,step_time,0.499
    25,step_time,0.5
    26,step_time,0.507
    27,step_time,0.496
    28,step_time,0.506
    29,step_time,0.498
    30,step_time,0.494
    31,step_time,0.504
    32,step_time,0.503
    33,step_time,0.497
    34,step_time,0.508
    35,step_time,0.508
    36,step_time,0.496
    37,step_time,0.497
    38,step_time,0.499
    39,step_time,0.499
    40,step_time,0.496
    41,step_time,0.503
    42,step_time,0.5
    43,step_time,0.501
    44,step_time,0.5
    45,step_time,0.501
    46,step_time,0.495
    47,step_time,0.495
    48,step_time,0.498
    49,step_time,0.498
    50,step_time,0.505
    51,step_time,0.502
    52,step_time,0.496
    53,step_time,0.494
    54,step_time,0.507
    55,step_time,0.502
    56,step_time,0.504
    57,step_time,0.494
    58,step_time,0.499
    59,step_time,0.504
    60,step_time,0.508
    61,step_time,0.498
    62,step_time,0.5
    63,step_time,0.499
    64,step_time,0.501
    65,step_time,0.499
    66,step_time,0.502
    67,step_time,0.5
    68,step_time,0.506
    69,step_time,0.498
    70,step_time,0.496
    71,step_time,0.494
    72,step_time,0.501
    73,step_time,0.491
    74,step_time,0.494
    75,step_time,0.502
    76,step_time,0.508
    77,step_time,0.49
    78,step_time,2.996
    79,step_time,0.5
    80,step_time,3
    81,step_time,0.508
    82,step_time,0.503
    83,step_time,0.498
    84,step_time,0.507
    85,step_time,0.505
    86,step_time,0.504
    87,step_time,2.995
    88,step_time,0.503
    89,step_time,0.511
    90,step_time,0.5
    91,step_time,3.005
    92,step_time,0.493
    93,step_time,2.997
    94,step_time,0.498
    95,step_time,0.503
    96,step_time,0.509
    97,step_time,0.498
    98,step_time,0.504
    99,step_time,3.003
    100,step_time,0.497
    101,step_time,0.503
    102,step_time,0.5
    103,step_time,0.502
    104,step_time,0.497
    105,step_time,0.504
    106,step_time,0.504
    107,step_time,0.501
    108,step_time,0.498
    109,step_time,2.992
    110,step_time,0.495
    111,step_time,0.506
    112,step_time,0.501
    113,step_time,0.498
    114,step_time,3.005
    115,step_time,0.503
    116,step_time,2.995
    117,step_time,0.499
    118,step_time,0.503
    119,step_time,0.501
    120,step_time,2.997
    121,step_time,0.496
    122,step_time,0.484
    123,step_time,2.996
    124,step_time,2.99
    125,step_time,0.505
    126,step_time,3.005
    127,step_time,2.998
    128,step_time,0.499
    129,step_time,2.996
    130,step_time,0.502
    131,step_time,3.004
    132,step_time,3.004
    133,step_time,0.51
    134,step_time,0.506
    135,step_time,0.503
    136,step_time,3.005
    137,step_time,0.5
    138,step_time,2.999
    139,step_time,0.511
    140,step_time,0.496
    141,step_time,0.495
    142,step_time,0.497
    143,step_time,3.004
    144,step_time,0.495
    145,step_time,0.502
    146,step_time,0.511
    147,step_time,0.502
    148,step_time,0.506
    149,step_time,2.992
    150,step_time,0.498
    ```
    => SLO030 error confidence=medium step=78 step_lo=77 cause=stalls added=1.339 z=5.779
Not this: as many stalls from the beginning on
    ```metrics step,name,value
    1,step_time,0.5014
    2,step_time,0.504
    3,step_time,0.5027
    4,step_time,0.4955
    5,step_time,2.0009
    6,step_time,0.4971
    7,step_time,0.5022
    8,step_time,0.4978
    9,step_time,0.5035
    10,step_time,0.5047
    11,step_time,0.4967
    12,step_time,0.5053
    13,step_time,0.5065
    14,step_time,1.9956
    15,step_time,0.5043
    16,step_time,0.5002
    17,step_time,0.4945
    18,step_time,0.4984
    19,step_time,0.4988
    20,step_time,0.4944
    21,step_time,0.5033
    22,step_time,0.5017
    23,step_time,2.0027
    24,step_time,0.4962
    25,step_time,0.5015
    26,step_time,0.4857
    27,step_time,0.4948
    28,step_time,0.4947
    29,step_time,0.4967
    30,step_time,0.4973
    31,step_time,0.5048
    32,step_time,1.9971
    33,step_time,0.5036
    34,step_time,0.4977
    35,step_time,0.506
    36,step_time,0.4935
    37,step_time,0.4959
    38,step_time,0.4965
    39,step_time,0.5055
    40,step_time,0.5067
    41,step_time,1.9953
    42,step_time,0.5056
    43,step_time,0.5014
    44,step_time,0.5015
    45,step_time,0.5057
    46,step_time,0.5072
    47,step_time,0.5048
    48,step_time,0.5098
    49,step_time,0.4955
    50,step_time,2.0047
    51,step_time,0.4959
    52,step_time,0.5057
    53,step_time,0.5042
    54,step_time,0.5028
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

_LIKELY = (
    "a data loader or storage that starves",
    "checkpoints, garbage collection or logging that began",
    "another job on the host",
)
_NEXT = (
    "look for what began at this step: a pause of the loader, a checkpoint, garbage collection",
    "time the loader apart from the step, and raise its workers or prefetch",
)


@rule("SLO030", shape=Shape.SLOWDOWN, needs=("metrics", "checkpoints", "progress"), config=Gravity)
def stalls_more_frequent(run: Run, cfg: Gravity | None = None) -> Iterator[Finding]:
    """Find the clock whose stalls add most."""
    cfg = cfg or Gravity()
    found = gravest(run, cfg, "stalls", "pauses")
    if found is not None:
        yield _finding(*found, cfg)


def _finding(one: Paced, change: Change, cfg: Gravity) -> Finding:
    added = change.ratio - 1
    words = f"pauses begin, one every {change.period} steps," if change.period else "slow steps come more often"
    return Finding(
        rule="SLO030",
        shape=Shape.SLOWDOWN,
        severity=severity_of(one, change, cfg),
        confidence=confidence_of(one, change),
        title=f"from step {one.at(change.first)} on, {words} and add {100 * added:.0f} % of time",
        because=measured(one, change),
        evidence=evidence_of(one, change),
        onset=onset_of(one, change),
        cause="periodic_pauses" if change.period else "stalls",
        numbers={"added": added, "z": change.z, "lost": one.lost(change), "period_steps": change.period},
        likely=_LIKELY,
        next=_NEXT,
    )
