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
    ```metrics
    step: 10..400/10
    lr: 0.0002*30 0.001*10
    ```
    => LRN009 warning confidence=medium step=310 step_lo=300 cause=lr_jump before=0.0002000 after=0.001000
Not this: warm-up and decay
    ```metrics
    step: 10..280/10
    lr: 4e-05 8e-05 0.00012 0.00016 0.0002 0.0002 0.0001917 0.0001833 0.000175 0.0001667 0.0001583 0.00015 0.0001417
        0.0001333 0.000125 0.0001167 0.0001083 0.0001 9.167e-05 8.333e-05 7.5e-05 6.667e-05 5.833e-05 5e-05 4.167e-05
        3.333e-05 2.5e-05 1.667e-05
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.learning.lr_schedule import Schedule, schedule_of
from forensics.analyses.learning.rate import OVER_PEAK
from forensics.case.curves.loss import curves
from forensics.rules.kit import Finding, Findings, Run, at_step, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Jump:
    """Thresholds of LRN009."""

    records: int = 20
    few: int = 2
    over_peak: float = OVER_PEAK


@rule("learning", needs=("metrics",), config=Jump, cause="lr_jump")
def lr_jump(run: Run, cfg: Jump) -> Findings:
    """Find the first learning rate with a jump, one above its peak before one below."""
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
    return lr_jump.finding(
        f"the learning rate jumps from {number(before)} to {number(after)} at {at_step(row['at'])}",
        "it is higher than ever before" if over else "it had been falling or constant",
        proof(row, curve.row(at - 1)),
        onset_at(row, curve.step(at - 1)),
        severity="warning" if over else "info",
        confidence="medium" if over else "low",
        numbers={"before": before, "after": after},
    )
