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
    ```metrics
    step: 1..150
    step_time: 0.495 0.494 0.503 0.499 0.509 0.504 0.498 0.504 0.501 0.497 0.505 0.497 0.51 0.505 0.498 0.499 0.505
        0.493 0.5 0.493 0.501 0.5 0.507 0.499 0.5 0.507 0.496 0.506 0.498 0.494 0.504 0.503 0.497 0.508*2 0.496 0.497
        0.499*2 0.496 0.503 0.5 0.501 0.5 0.501 0.495*2 0.498*2 0.505 0.502 0.496 0.494 0.507 0.502 0.504 0.494 0.499
        0.504 0.508 0.498 0.5 0.499 0.501 0.499 0.502 0.5 0.506 0.498 0.496 0.494 0.501 0.491 0.494 0.502 0.508 0.49
        2.996 0.5 3 0.508 0.503 0.498 0.507 0.505 0.504 2.995 0.503 0.511 0.5 3.005 0.493 2.997 0.498 0.503 0.509 0.498
        0.504 3.003 0.497 0.503 0.5 0.502 0.497 0.504*2 0.501 0.498 2.992 0.495 0.506 0.501 0.498 3.005 0.503 2.995
        0.499 0.503 0.501 2.997 0.496 0.484 2.996 2.99 0.505 3.005 2.998 0.499 2.996 0.502 3.004*2 0.51 0.506 0.503
        3.005 0.5 2.999 0.511 0.496 0.495 0.497 3.004 0.495 0.502 0.511 0.502 0.506 2.992 0.498
    ```
    => SLO030 error confidence=medium step=78 step_lo=77 cause=stalls added=1.339 z=5.779
Not this: as many stalls from the beginning on
    ```metrics
    step: 1..54
    step_time: 0.5014 0.504 0.5027 0.4955 2.0009 0.4971 0.5022 0.4978 0.5035 0.5047 0.4967 0.5053 0.5065 1.9956 0.5043
        0.5002 0.4945 0.4984 0.4988 0.4944 0.5033 0.5017 2.0027 0.4962 0.5015 0.4857 0.4948 0.4947 0.4967 0.4973
        0.5048 1.9971 0.5036 0.4977 0.506 0.4935 0.4959 0.4965 0.5055 0.5067 1.9953 0.5056 0.5014 0.5015 0.5057 0.5072
        0.5048 0.5098 0.4955 2.0047 0.4959 0.5057 0.5042 0.5028
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.pace.account import Gravity, Paced, gravest
from forensics.analyses.pace.change import Change
from forensics.rules.kit import Finding, Findings, Run, rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of, severity_of


@rule("slowdown", needs=("metrics", "checkpoints", "progress"), config=Gravity)
def stalls_more_frequent(run: Run, cfg: Gravity) -> Findings:
    """Find the clock whose stalls add most."""
    found = gravest(run, cfg, "stalls", "pauses")
    if found is not None:
        yield _finding(*found, cfg)


def _finding(one: Paced, change: Change, cfg: Gravity) -> Finding:
    added = change.ratio - 1
    words = f"pauses begin, one every {change.period} steps," if change.period else "slow steps come more often"
    return stalls_more_frequent.finding(
        f"from step {one.at(change.first)} on, {words} and add {100 * added:.0f} % of time",
        measured(one, change),
        evidence_of(one, change),
        onset_of(one, change),
        severity=severity_of(one, change, cfg),
        confidence=confidence_of(one, change),
        cause="periodic_pauses" if change.period else "stalls",
        numbers={"added": added, "z": change.z, "lost": one.lost(change), "period_steps": change.period},
    )
