"""RSM004 resume-step-lost: a resumed run counts its steps from the start again.

What it detects: a restart after which the step begins at zero while the training itself went on.

Why it matters: schedules, logs and checkpoint names hang on the step: the learning rate warms up again, checkpoints
are overwritten, and curves overlay each other.

How it decides: the steps count from the start again, while a counter of samples or tokens, or the epoch, goes on from
where it was. Where no such counter is printed, a new process (a line that says what was loaded, the head of the
log again) whose loss goes on at its old level shows it, too, with less confidence: a next stage on the weights of the
last looks the same.

What else looks like this: a next stage (fine-tuning after pre-training) in the same log.

What to do next: save and load the step with the weights; correct the step of what was logged since.

References: PyTorch documentation, saving and loading a general checkpoint.

Example:
    ```metrics
    attempt: 0*12 1*6
    step: 0..11 0..5
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.88..1.83/-0.01
    num_samples: 64..1152/64
    ```
    => RSM004 warning confidence=high step=0 cause=step_lost last_step=11 first_step=0
Not this:
    ```metrics
    attempt: 0*12 1*6
    step: 0..11 0..5
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.88..1.83/-0.01
    num_samples: 64..768/64 64..384/64
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.resume.around import Around, around
from forensics.analyses.resume.levels import levels
from forensics.case.processes.lives import Boundary, restarts
from forensics.rules.kit import Confidence, Finding, Findings, Run, rule
from forensics.rules.resume._compare import begun, evidence_of, onset

_COUNTERS = ("num_samples", "num_tokens", "epoch")


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM004: shares of a counter's last value that it goes on from, and records whose level counts.

    The share is low because a restart goes back to its checkpoint; a counter that begins anew is near its first value.
    A life of fewer than `least_records` has no level; of a short one a quarter counts instead of `records`. The loss
    goes on where it is back by less than `near` of the way to its first level.
    """

    least: float = 0.3
    most: float = 1.5
    records: int = 5
    least_records: int = 8
    errors: float = 6.0
    near: float = 0.2


@rule("learning", needs=("metrics", "checkpoints"), config=Config, severity="warning")
def step_lost(run: Run, cfg: Config) -> Findings:
    """Find the first restart that counts anew what went on."""
    for boundary in restarts(run):
        if boundary.kind != "scratch":
            continue
        found = _counter(run, boundary, cfg) or _level(run, boundary, cfg)
        if found is not None:
            yield found
            return


def _counter(run: Run, boundary: Boundary, cfg: Config) -> Finding | None:
    for name in _COUNTERS:
        seen = around(run, boundary, name)
        if seen is None:
            continue
        whole = pl.concat([seen.before["value"], seen.replaced["value"]])
        old, new = float(whole[-1]), float(seen.after["value"][0])
        if old > 2 * whole[0] and max(cfg.least * old, 2 * whole[0]) <= new <= cfg.most * old:
            because = f"{seen.after['raw_name'][0]} goes on from {old:g} to {new:g}"
            return _finding(run, boundary, seen, because, Confidence.HIGH)
    return None


def _level(run: Run, boundary: Boundary, cfg: Config) -> Finding | None:
    start = begun(run, boundary)
    seen = around(run, boundary, "loss") if start is not None and start.quote else None
    if start is None or seen is None:
        return None
    found = levels(seen, records=cfg.records, errors=cfg.errors)
    if found is None or seen.before.height + seen.replaced.height < cfg.least_records:
        return None
    if not found.is_clear or abs(found.back) > cfg.near:
        return None
    said = f", and step {start.step} was loaded" if start.step else ", and a new process began"
    sure = Confidence.MEDIUM if start.resumed else Confidence.LOW
    return _finding(run, boundary, seen, f"the loss goes on at {found.new:.4g} after {found.last:.4g}{said}", sure)


def _finding(run: Run, boundary: Boundary, seen: Around, because: str, confidence: Confidence) -> Finding:
    return step_lost.finding(
        f"the step counts from {boundary.after.first} again after step {boundary.before.last}",
        because,
        evidence_of(run, seen, boundary),
        onset(boundary),
        confidence=confidence,
        cause="step_lost" if confidence is Confidence.HIGH else "steps_count_anew",
        numbers={"last_step": boundary.before.last, "first_step": boundary.after.first},
    )
