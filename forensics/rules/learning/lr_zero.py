"""LRN008 lr-zero: the learning rate was zero while the run went on.

What it detects: a learning rate that is zero in nearly every record, or that falls to zero long before the end.

Why it matters: with a learning rate of zero no step changes anything.

How it decides: `always` of the records are exactly zero and the loss did not fall: an error. If the loss fell all the
same, the printed number is wrong (too few digits), and it is a note. Or the last `early` of the records, `few` at
least, are zero, and the value before them was above `abrupt` of the peak, or digits enough are printed to tell a small
rate from none: a warning; a smooth decay whose last digits vanish in print is none.

What else looks like this: a learning rate printed with too few decimals; a loss scaler that skips the first steps; an
evaluation-only run.

What to do next: print the learning rate of the optimizer's groups after the scheduler's step; check the number of
steps that the scheduler was given, against accumulation and the number of processes.

References: PyTorch documentation, torch.optim, "How to adjust learning rate".

Example:
    ```metrics
    step: 10..200/10
    loss: 4.293 4.305 4.323 4.277 4.295 4.272 4.25 4.392 4.285 4.297 4.192 4.237 4.289 4.318 4.342 4.27 4.257 4.318
        4.317 4.265
    lr: 0
    ```
    => LRN008 error confidence=high step=10 cause=lr_zero zeros=1.000 peak=0.000
Not this: a loss that falls: the number was printed with too few digits
    ```metrics
    step: 10..200/10
    loss: 4.293 4.095 3.912 3.681 3.516 3.327 3.148 3.095 2.873 2.74 2.542 2.445 2.354 2.254 2.156 2.017 1.913 1.846
        1.755 1.65
    lr: 0
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.learning.losses import judged, loss_beside
from forensics.analyses.learning.lr_schedule import Schedule, schedule_of
from forensics.analyses.learning.rate import Zero, ended_early
from forensics.rules.kit import (
    Evidence,
    EvidenceRole,
    Finding,
    Findings,
    Run,
    Severity,
    at_step,
    metric_evidence,
    number,
    onset_at,
    proof,
    rule,
)
from forensics.rules.learning.no_decrease import FLAT, is_flat


@rule("learning", needs=("metrics",), config=Zero, confidence="high", cause="lr_zero")
def lr_zero(run: Run, cfg: Zero) -> Findings:
    """Find the first learning rate that was zero all along, else the first that ended too early."""
    every = [schedule_of(c) for c in judged(run, "lr") if len(c) > cfg.few]
    long = [s for s in every if len(s.curve) >= cfg.records]
    if long and all(s.zeros >= cfg.always for s in long):
        yield from _always(run, long[0])
        return
    for s in every:
        if ended_early(s, cfg):
            yield _finding(s, s.dead, Severity.WARNING, f"zero from {at_step(s.curve.step(s.dead))} to the end")
            return


def _always(run: Run, schedule: Schedule) -> Findings:
    one = loss_beside(run, schedule.curve)
    if one is None or one.trend is None or not is_flat(one.trend, FLAT):
        return
    yield _finding(
        schedule, 0, Severity.ERROR, "zero in every record", metric_evidence(one.curve.row(-1), EvidenceRole.RELATED)
    )


def _finding(schedule: Schedule, at: int, severity: Severity, words: str, *more: Evidence) -> Finding:
    first = schedule.curve.row(at)
    left = len(schedule.curve) - at
    return lr_zero.finding(
        f"the learning rate is {words}",
        f"{left} of {len(schedule.curve)} records"
        + (f"; the value before them is {number(schedule.before_dead)}" if at else ", and the loss did not fall"),
        proof(first, schedule.curve.row(-1), *more),
        onset_at(first),
        severity=severity,
        numbers={"zeros": schedule.zeros, "peak": schedule.peak},
    )
