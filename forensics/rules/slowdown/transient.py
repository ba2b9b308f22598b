"""SLO002 temporary-slowdown: steps were slower for a while, and came back.

What it detects: twenty or more records in a row that were slower by 5 % or more, after which the old level returned.

Why it matters: the run is not slow now, so nothing needs to be done to it; the time is lost all the same, and it may
come again.

How it decides: the levels of the steady step times (docs/explanation/slowdown.md): a higher one that ends before the
run does. A warning where it cost `lost` of the run's time and stands `z` deviations out; else a note.

What else looks like this: a stage of the training with heavier steps, by design; an evaluation that runs beside the
training.

What to do next: compare the times with those of other jobs on the same hosts and storage.

References: Chow et al., "FBDetect: Catching Tiny Performance Regressions at Hyperscale" (SOSP 2024), on changes that
went away.

Example:
    ```metrics step,name,value
    1,step_time,0.5005
    2,step_time,0.5063
    3,step_time,0.4954
    4,step_time,0.505
    5,step_time,0.4987
    6,step_time,0.4987
    7,step_time,0.5096
    8,step_time,0.5008
    9,step_time,0.4998
    10,step_time,0.5037
    11,step_time,0.5057
    12,step_time,0.4998
    13,step_time,0.5029
    14,step_time,0.4952
    15,step_time,0.4982
    16,step_time,0.4978
    17,step_time,0.4934
    18,step_time,0.4925
    19,step_time,0.4919
    20,step_time,0.4988
    21,step_time,0.4991
    22,step_time,0.4984
    23,step_time,0.5003
    24,step_time,0.4934
    25,step_time,0.4996
    26,step_time,0.5012
    27,step_time,0.5038
    28,step_time,0.4958
    29,step_time,0.498
    30,step_time,0.49
    31,step_time,0.796
    32,step_time,0.7826
    33,step_time,0.7887
    34,step_time,0.8089
    35,step_time,0.7826
    36,step_time,0.8064
    37,step_time,0.8026
    38,step_time,0.7975
    39,step_time,0.8037
    40,step_time,0.8042
    41,step_time,0.8084
    42,step_time,0.7982
    43,step_time,0.7953
    44,step_time,0.7952
    45,step_time,0.7921
    46,step_time,0.7996
    47,step_time,0.7937
    48,step_time,0.8086
    49,step_time,0.7852
    50,step_time,0.7913
    51,step_time,0.7924
    52,step_time,0.7834
    53,step_time,0.8154
    54,step_time,0.781
    55,step_time,0.7977
    56,step_time,0.4974
    57,step_time,0.5083
    58,step_time,0.4902
    59,step_time,0.5054
    60,step_time,0.4964
    61,step_time,0.4992
    62,step_time,0.4967
    63,step_time,0.5032
    64,step_time,0.4943
    65,step_time,0.4996
    66,step_time,0.5018
    67,step_time,0.5093
    68,step_time,0.4881
    69,step_time,0.5077
    70,step_time,0.5048
    71,step_time,0.4976
    72,step_time,0.5015
    73,step_time,0.4977
    74,step_time,0.5083
    75,step_time,0.501
    76,step_time,0.4989
    77,step_time,0.4989
    78,step_time,0.499
    79,step_time,0.4991
    80,step_time,0.4956
    ```
    => SLO002 warning confidence=low step=31 step_lo=30 cause=temporary_slowdown causal=context ratio=1.595 lost=0.1586
Not this: three single slow records
    ```metrics step,name,value
    1,step_time,0.5104
    2,step_time,0.4905
    3,step_time,0.4823
    4,step_time,0.4994
    5,step_time,0.4993
    6,step_time,0.5019
    7,step_time,0.499
    8,step_time,0.4993
    9,step_time,0.5017
    10,step_time,0.5049
    11,step_time,0.4978
    12,step_time,0.4981
    13,step_time,0.5098
    14,step_time,0.5027
    15,step_time,4.1
    16,step_time,0.4951
    17,step_time,0.5118
    18,step_time,0.5039
    19,step_time,0.4971
    20,step_time,0.4942
    21,step_time,0.5015
    22,step_time,0.4959
    23,step_time,0.4947
    24,step_time,0.4936
    25,step_time,0.4975
    26,step_time,0.5056
    27,step_time,0.4978
    28,step_time,0.4928
    29,step_time,0.5034
    30,step_time,4
    31,step_time,0.5003
    32,step_time,0.5042
    33,step_time,0.506
    34,step_time,0.4992
    35,step_time,0.4993
    36,step_time,0.4998
    37,step_time,0.4944
    38,step_time,0.5034
    39,step_time,0.5069
    40,step_time,0.5009
    41,step_time,0.4988
    42,step_time,0.4987
    43,step_time,0.4961
    44,step_time,0.496
    45,step_time,4.2
    46,step_time,0.498
    47,step_time,0.4958
    48,step_time,0.4978
    49,step_time,0.4922
    50,step_time,0.5018
    51,step_time,0.5002
    52,step_time,0.4943
    53,step_time,0.4886
    54,step_time,0.5
    55,step_time,0.5056
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.pace.account import Paced, paced
from forensics.analyses.pace.change import Change
from forensics.case.evidence import number
from forensics.model import Causal, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Temporary:
    """Thresholds of SLO002: it is a warning where it cost `lost` of the run's time and stands `z` deviations out."""

    lost: float = 0.02
    z: float = 8.0


@rule("SLO002", shape=Shape.SLOWDOWN, needs=("metrics", "checkpoints", "progress"), config=Temporary)
def temporary_slowdown(run: Run, cfg: Temporary | None = None) -> Iterator[Finding]:
    """Find the slow stretch that ended and cost most of the time."""
    cfg = cfg or Temporary()
    found = [(p, p.change) for p in paced(run) if p.change is not None and p.change.kind == "transient"]
    if found:
        yield _finding(*max(found, key=lambda pair: pair[0].lost(pair[1])), cfg)


def _finding(one: Paced, change: Change, cfg: Temporary) -> Finding:
    lost = one.lost(change)
    last = one.at(min(change.end, len(one.steady) - 1))
    return Finding(
        rule="SLO002",
        shape=Shape.SLOWDOWN,
        severity=Severity.WARNING if lost >= cfg.lost and change.z >= cfg.z else Severity.INFO,
        confidence=confidence_of(one, change),
        title=f"seconds per {one.clock.unit} rose to {change.ratio:.2f} times from step {one.at(change.first)} "
        f"to step {last}, then came back",
        because=measured(one, change),
        evidence=evidence_of(one, change),
        onset=onset_of(one, change),
        cause="temporary_slowdown",
        causal=Causal.CONTEXT,
        numbers={"before_s": number(change.before), "ratio": change.ratio, "end_step": last, "lost": lost},
        likely=(
            "another job on the host or the storage",
            "a device that was hot for a while",
            "a slow part of the data",
        ),
        next=("look at what else ran on the hosts between these steps",),
    )
