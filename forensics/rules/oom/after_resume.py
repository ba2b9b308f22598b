"""OOM012 oom-after-resume: a run that had fitted ran out of memory soon after it was resumed.

What it detects: an out-of-memory error within the first steps after a restart, where the life before was longer.

Why it matters: the same step fitted before. What is new is the resume: a checkpoint that is loaded onto the device
beside the model, optimizer states that are loaded twice, another world size, or a stale process of the life before.

How it decides: the last restart of a source continues or replays an earlier life that trained at least `longer` times
as many steps as the new one did before its fatal device error, and the new life has at most `records` records.

What else looks like this: a resumed run that happens to meet its longest batch early.

What to do next: load checkpoints with `map_location="cpu"` and delete the loaded states; compare world size and
micro-batch of both lives; look for processes of the earlier life on the device.

References: PyTorch, "Saving and Loading Models", on `map_location`.

Example:
    ```metrics
    step: 10..60/10 50
    source: train.log
    attempt: 0*6 1
    line: 1..6 9
    loss: 2.5..2.0/-0.1 2.1
    ```
    ```events source,line,code,text,attrs
    train.log,12,cuda-oom,CUDA out of memory. Tried to allocate 512.00 MiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM012 warning confidence=medium step=50 cause=oom_after_resume causal=context
Not this: the error in the first life
    ```metrics step,name,value,source,attempt,seq,line
    10,loss,2.5,train.log,0,1,1
    20,loss,2.4,train.log,0,2,2
    30,loss,2.3,train.log,0,3,3
    ```
    ```events source,line,code,text,attrs
    train.log,12,cuda-oom,CUDA out of memory. Tried to allocate 512.00 MiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.oom_messages import OomMessage
from forensics.case.processes.lives import Boundary, boundaries
from forensics.rules.kit import Evidence, Findings, Locator, Run, proof, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM012: records of the new life, and how many times longer the life before had trained."""

    records: int = 3
    longer: float = 3.0


@rule(
    "oom",
    needs=("events", "metrics", "checkpoints"),
    config=Config,
    severity="warning",
    confidence="medium",
    cause="oom_after_resume",
    causal="context",
)
def after_resume(run: Run, cfg: Config) -> Findings:
    """Find a fatal device error that came right after a restart."""
    first = next(iter(fatal(run)), None)
    if first is None:
        return
    found = [b for b in boundaries(run) if b.after.source == first.source and _short(b, first, cfg)]
    if not found:
        return
    last = found[-1]
    resumed = f"resumed at step {last.after.first}"
    yield after_resume.finding(
        f"memory ran out {last.after.records} record{'s' if last.after.records != 1 else ''} after the run was"
        f" {resumed}; before, {last.before.records} fitted",
        "the same steps fitted before the restart, so what is new is the resume itself",
        proof(
            message_evidence(first),
            Evidence(last.after.source, Locator(line=last.after.line_first), resumed, step=last.after.first),
        ),
        message_onset(first),
        culprits=ranks(first),
    )


def _short(boundary: Boundary, message: OomMessage, cfg: Config) -> bool:
    """Whether the life after a restart is short, ended with the message, and follows a much longer one."""
    life = boundary.after
    here = life.line_last is None or message.locator.line is None or life.line_last <= message.locator.line
    return here and life.records <= cfg.records and boundary.before.records >= cfg.longer * life.records
