"""RSM002 resume-from-scratch: a restarted run began anew although a checkpoint exists.

What it detects: a restart whose loss is back at the level of the very first steps: the weights were not restored.

Why it matters: all the work before it is lost, mostly in silence.

How it decides: the steps count from the start again, or the line that says what was loaded names a later step; a
checkpoint of a later step was saved before; and the first losses are nearer to the run's first ones than to its last:
at least 0.7 of the way back, with a fall before that is well above noise, or each of them above all losses of the half
where the old life had settled, where its records are too few to measure noise. Of a short stretch they are enough where
they come again exactly. It is an error where the step goes on, for then nothing else says that the work is lost, and a
warning where the steps, too, count from the start. A stretch that the log calls finished is no attempt
that was resumed.

What else looks like this: a next stage on the same log, whose loss begins where the last stage ended; a new run that is
appended to an old log on purpose.

What to do next: start with the trainer's option to resume from the checkpoint named here; check that the checkpoint's
folder is the one that is searched.

References: Transformers documentation, `Trainer.train(resume_from_checkpoint)`.

Example:
    ```metrics
    attempt: 0*24 1*10
    step: 0..23 0..9
    loss: 8.02 7.73 7.51 7.24 7.0 6.77 6.48 6.26 5.99 5.75 5.52 5.23 5.01 4.74 4.5 4.27 3.98 3.76 3.49 3.25 3.02 2.73
        2.51 2.24 7.98 7.76 7.49 7.25 7.02 6.73 6.51 6.24 6.0 5.77
    ```
    ```checkpoints seq,step,path,kind
    1,20,ckpt/step-20,saved
    ```
    => RSM002 warning confidence=medium step=0 cause=restarted_from_scratch first=7.510 after=7.490
Not this:
    ```metrics
    attempt: 0*24 1*10
    step: 0..23 0..9
    loss: 8.02 7.73 7.51 7.24 7.0 6.77 6.48 6.26 5.99 5.75 5.52 5.23 5.01 4.74 4.5 4.27 3.98 3.76 3.49 3.25 3.02 2.73
        2.51 2.24 2.1..2.01/-0.01
    ```
    ```checkpoints seq,step,path,kind
    1,20,ckpt/step-20,saved
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.resume.around import Around, around
from forensics.analyses.resume.levels import Levels, levels
from forensics.case.checkpoints import known
from forensics.case.processes.lives import Boundary, restarts
from forensics.rules.kit import Finding, Findings, Row, Run, checkpoint_evidence, proof, rule
from forensics.rules.resume._compare import evidence_of, loaded_step, onset

#: A loss so far above its first level, in ways that it had fallen, is not back there.
_BEYOND = 0.5


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM002: records compared, share of the way back to the first level, and standard errors.

    Of a short run a quarter of its records is compared, `fewest` at least: a median needs three.
    """

    records: int = 5
    fewest: int = 3
    back: float = 0.7
    errors: float = 6.0


@rule("learning", needs=("metrics", "checkpoints", "events"), config=Config, cause="restarted_from_scratch")
def from_scratch(run: Run, cfg: Config) -> Findings:
    """Find the first restart that lost the weights."""
    if not restarts(run):
        return
    saved = known(run)
    for boundary in restarts(run):
        before = saved.filter((saved["step"] > boundary.before.first) & (saved["step"] <= boundary.before.last))
        loaded = loaded_step(run, boundary) or 0
        if not before.height and not loaded:
            continue
        seen = around(run, boundary, "loss")
        found = levels(seen, records=cfg.records, errors=cfg.errors) if seen is not None else None
        if seen is not None and found is not None and _is_back(found, cfg):
            yield _finding(run, boundary, seen, found, before.row(-1, named=True) if before.height else None)
            return


def _is_back(found: Levels, cfg: Config) -> bool:
    """Whether the loss is where it was when the run began."""
    if found.is_same:
        return True
    near = cfg.back <= found.back and found.new - found.first <= _BEYOND * (found.first - found.last)
    return near and found.count >= cfg.fewest and found.is_clear


def _finding(run: Run, boundary: Boundary, seen: Around, found: Levels, saved: Row | None) -> Finding:
    first, last, new = found.first, found.last, found.new
    steps = boundary.before.last if saved is None else saved["step"]
    there = (checkpoint_evidence(saved),) if saved is not None else ()
    path = saved["path"] if saved is not None else None
    return from_scratch.finding(
        f"the restart at step {boundary.after.first} began anew: the loss is back at {new:.4g} after {last:.4g}",
        f"the run's first losses were {first:.4g}; a checkpoint of step {steps} was there to go on from",
        proof(*evidence_of(run, seen, boundary), *there),
        onset(boundary),
        severity="warning" if boundary.kind == "scratch" else "error",
        confidence="medium" if boundary.kind == "scratch" else "high",
        numbers={"first": first, "last": last, "after": new, "steps_lost": boundary.before.last},
        next=(f"resume from {path}" if path else f"resume from the checkpoint of step {steps}",),
    )
