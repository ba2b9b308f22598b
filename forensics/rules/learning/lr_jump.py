"""LRN009 lr-jump: the learning rate leapt up in the middle of the run.

What it detects: one or two jumps of the logged learning rate by half or more, after it had been constant or falling.

Why it matters: a scheduler that was built again, or that forgot its step, raises the learning rate of a half-trained
model; the loss often follows.

How it decides: from one record to the next the value grows by more than half, past the first twentieth, and not within
a warm-up, not even one whose stairs are printed several times. A last record alone may be a number cut short. Above
`over_peak` times all values before it is a warning: no schedule with restarts does that. Back to a known height is a
note. More than `few` jumps are a cyclic schedule, and nothing is said.

What else looks like this: warm restarts; two optimizers that print under one name; a new stage.

What to do next: check that the scheduler's state is saved and loaded, and that its step is not called once per process.

References: Loshchilov and Hutter 2017, SGDR, on restarts that are wanted.

Example:
    ```metrics step,name,value
    10,lr,0.0002
    20,lr,0.0002
    30,lr,0.0002
    40,lr,0.0002
    50,lr,0.0002
    60,lr,0.0002
    70,lr,0.0002
    80,lr,0.0002
    90,lr,0.0002
    100,lr,0.0002
    110,lr,0.0002
    120,lr,0.0002
    130,lr,0.0002
    140,lr,0.0002
    150,lr,0.0002
    160,lr,0.0002
    170,lr,0.0002
    180,lr,0.0002
    190,lr,0.0002
    200,lr,0.0002
    210,lr,0.0002
    220,lr,0.0002
    230,lr,0.0002
    240,lr,0.0002
    250,lr,0.0002
    260,lr,0.0002
    270,lr,0.0002
    280,lr,0.0002
    290,lr,0.0002
    300,lr,0.0002
    310,lr,0.001
    320,lr,0.001
    330,lr,0.001
    340,lr,0.001
    350,lr,0.001
    360,lr,0.001
    370,lr,0.001
    380,lr,0.001
    390,lr,0.001
    400,lr,0.001
    ```
    => LRN009 warning confidence=medium step=310 step_lo=300 cause=lr_jump before=0.0002000 after=0.001000
Not this: warm-up and decay
    ```metrics step,name,value
    10,lr,4e-05
    20,lr,8e-05
    30,lr,0.00012
    40,lr,0.00016
    50,lr,0.0002
    60,lr,0.0002
    70,lr,0.0001917
    80,lr,0.0001833
    90,lr,0.000175
    100,lr,0.0001667
    110,lr,0.0001583
    120,lr,0.00015
    130,lr,0.0001417
    140,lr,0.0001333
    150,lr,0.000125
    160,lr,0.0001167
    170,lr,0.0001083
    180,lr,0.0001
    190,lr,9.167e-05
    200,lr,8.333e-05
    210,lr,7.5e-05
    220,lr,6.667e-05
    230,lr,5.833e-05
    240,lr,5e-05
    250,lr,4.167e-05
    260,lr,3.333e-05
    270,lr,2.5e-05
    280,lr,1.667e-05
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.learning.lr_schedule import Schedule, schedule_of
from forensics.analyses.learning.rate import OVER_PEAK
from forensics.case.curves.loss import curves
from forensics.case.evidence import at_step, metric_evidence, number
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Jump:
    """Thresholds of LRN009."""

    records: int = 20
    few: int = 2
    over_peak: float = OVER_PEAK


@rule("LRN009", shape=Shape.LEARNING, needs=("metrics",), config=Jump)
def lr_jump(run: Run, cfg: Jump | None = None) -> Iterator[Finding]:
    """Find the first learning rate with a jump, one above its peak before one below."""
    cfg = cfg or Jump()
    found = [
        (s, s.ups[0])
        for c in curves(run, "lr")
        if len(c) >= cfg.records and 0 < len((s := schedule_of(c)).ups) <= cfg.few and s.ups[0] < len(c) - 1
    ]
    if found:
        yield max((_finding(s, at, cfg) for s, at in found), key=lambda f: f.severity.rank)


def _finding(schedule: Schedule, at: int, cfg: Jump) -> Finding:
    curve = schedule.curve
    before, after = float(curve.values[at - 1]), float(curve.values[at])
    over = after > cfg.over_peak * float(curve.values[:at].max())
    row = curve.row(at)
    return Finding(
        rule="LRN009",
        shape=Shape.LEARNING,
        severity=Severity.WARNING if over else Severity.INFO,
        confidence=Confidence.MEDIUM if over else Confidence.LOW,
        title=f"the learning rate jumps from {number(before)} to {number(after)} at {at_step(row['at'])}",
        because="it is higher than ever before" if over else "it had been falling or constant",
        evidence=(metric_evidence(row), metric_evidence(curve.row(at - 1), EvidenceRole.RELATED)),
        onset=Onset(step=row["at"], t_ns=row["t_ns"], rank=curve.rank, step_lo=curve.step(at - 1)),
        cause="lr_jump",
        causal=Causal.ROOT,
        numbers={"before": before, "after": after},
        likely=("the scheduler was built again or lost its state", "a restart of a cyclic schedule", "a new stage"),
        next=("check that the scheduler's state is saved and loaded with the checkpoint",),
    )
