"""RSM004 resume-step-lost: a resumed run counts its steps from the start again.

What it detects: a restart after which the step begins at zero while the training itself went on.

Why it matters: schedules, logs and checkpoint names hang on the step: the learning rate warms up again, checkpoints
are overwritten, and curves overlay each other.

How it decides: the steps count from the start again, while a counter of samples or tokens, or the epoch, goes on from
where it was. Where no such counter is printed, a line that says a later checkpoint was loaded and a loss that goes on
at its old level are a remark only, for a next stage on the weights of the last looks the same.

What else looks like this: a next stage (fine-tuning after pre-training) in the same log.

What to do next: save and load the step with the weights; correct the step of what was logged since.

References: PyTorch documentation, saving and loading a general checkpoint.

Example:
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.02
    0,0,0,num_samples,64
    1,0,1,loss,1.97
    1,0,1,num_samples,128
    2,0,2,loss,1.99
    2,0,2,num_samples,192
    3,0,3,loss,1.96
    3,0,3,num_samples,256
    4,0,4,loss,1.96
    4,0,4,num_samples,320
    5,0,5,loss,1.97
    5,0,5,num_samples,384
    6,0,6,loss,1.92
    6,0,6,num_samples,448
    7,0,7,loss,1.94
    7,0,7,num_samples,512
    8,0,8,loss,1.91
    8,0,8,num_samples,576
    9,0,9,loss,1.91
    9,0,9,num_samples,640
    10,0,10,loss,1.92
    10,0,10,num_samples,704
    11,0,11,loss,1.87
    11,0,11,num_samples,768
    12,1,0,loss,1.88
    12,1,0,num_samples,832
    13,1,1,loss,1.87
    13,1,1,num_samples,896
    14,1,2,loss,1.86
    14,1,2,num_samples,960
    15,1,3,loss,1.85
    15,1,3,num_samples,1024
    16,1,4,loss,1.84
    16,1,4,num_samples,1088
    17,1,5,loss,1.83
    17,1,5,num_samples,1152
    ```
    => RSM004 warning confidence=high step=0 cause=step_lost last_step=11 first_step=0
Not this:
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.02
    0,0,0,num_samples,64
    1,0,1,loss,1.97
    1,0,1,num_samples,128
    2,0,2,loss,1.99
    2,0,2,num_samples,192
    3,0,3,loss,1.96
    3,0,3,num_samples,256
    4,0,4,loss,1.96
    4,0,4,num_samples,320
    5,0,5,loss,1.97
    5,0,5,num_samples,384
    6,0,6,loss,1.92
    6,0,6,num_samples,448
    7,0,7,loss,1.94
    7,0,7,num_samples,512
    8,0,8,loss,1.91
    8,0,8,num_samples,576
    9,0,9,loss,1.91
    9,0,9,num_samples,640
    10,0,10,loss,1.92
    10,0,10,num_samples,704
    11,0,11,loss,1.87
    11,0,11,num_samples,768
    12,1,0,loss,1.88
    12,1,0,num_samples,64
    13,1,1,loss,1.87
    13,1,1,num_samples,128
    14,1,2,loss,1.86
    14,1,2,num_samples,192
    15,1,3,loss,1.85
    15,1,3,num_samples,256
    16,1,4,loss,1.84
    16,1,4,num_samples,320
    17,1,5,loss,1.83
    17,1,5,num_samples,384
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.resume._compare import Around, around, evidence_of, initial, mean_error, onset
from forensics.signals.attempts import Boundary, boundaries
from forensics.signals.rl_levels import median
from forensics.store.run import Run

_COUNTERS = ("num_samples", "num_tokens", "epoch")


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM004: shares of a counter's last value that it goes on from, and records whose level counts.

    The share is low because a restart goes back to its checkpoint; a counter that begins anew is near its first value.
    """

    least: float = 0.3
    most: float = 1.5
    records: int = 5
    errors: float = 6.0


@rule("RSM004", shape=Shape.LEARNING, needs=("metrics", "checkpoints"), config=Config)
def step_lost(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the first restart that counts anew what went on."""
    cfg = cfg or Config()
    for boundary in boundaries(run):
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
            return _finding(boundary, seen, Severity.WARNING, because)
    return None


def _level(run: Run, boundary: Boundary, cfg: Config) -> Finding | None:
    loaded = boundary.after.resumed_step
    seen = around(run, boundary, "loss") if loaded and loaded > boundary.after.first else None
    if seen is None or seen.after.height < cfg.records:
        return None
    whole = pl.concat([seen.before["value"], seen.replaced["value"]])
    first, last = initial(seen, count=cfg.records), median(whole.tail(cfg.records))
    new = median(seen.after["value"].head(cfg.records))
    noise = mean_error(whole.tail(10 * cfg.records), count=cfg.records)
    if whole.len() < 4 * cfg.records or first - last <= cfg.errors * noise or abs(new - last) > 0.2 * (first - last):
        return None
    return _finding(boundary, seen, Severity.INFO, f"the loss goes on at {new:.4g}, and step {loaded} was loaded")


def _finding(boundary: Boundary, seen: Around, severity: Severity, because: str) -> Finding:
    warned = severity is Severity.WARNING
    return Finding(
        rule="RSM004",
        shape=Shape.LEARNING,
        severity=severity,
        confidence=Confidence.HIGH if warned else Confidence.LOW,
        title=f"the step counts from {boundary.after.first} again after step {boundary.before.last}",
        because=because,
        evidence=evidence_of(seen, boundary),
        onset=onset(boundary),
        cause="step_lost" if warned else "steps_count_anew",
        causal=Causal.ROOT,
        numbers={"last_step": boundary.before.last, "first_step": boundary.after.first},
        likely=("the step was not saved with the weights", "a next stage on the same log"),
        next=("save and load the step, and shift what was logged since",),
    )
