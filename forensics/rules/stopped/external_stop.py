"""STP001 external-stop: a person or a scheduler ended the run.

What it detects: SIGTERM, SIGINT and SIGHUP as the program or its launcher reports them, time limits, preemption,
cancelled jobs, and kills by the job's owner or an administrator.

Why it matters: nothing in the program is to be fixed; the run wants resuming, and its last checkpoint is the answer.

How it decides: the earliest such line after which the run did not go on, and which does not follow a success marker.
A graceful stop that saves and then says "complete" is still a stop.

What else looks like this: a handler that is merely registered, the SIGTERM that a launcher sends to the other workers
after one failed, and the end of a job that had already finished.

What to do next: resume from the last checkpoint; raise the time limit, or save more often than the limit.

References: Slurm, scancel(1) and `--time`; LSF exit reasons; torch.distributed.elastic agent signals.

Example:
    ```events source,line,code,text,attrs
    job.out,9,slurm-timelimit,CANCELLED AT 2031-02-03 DUE TO TIME LIMIT,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => STP001 error confidence=high cause=time_limit messages=1
Not this:
    ```events source,line,code,text,attrs
    job.out,5,success,training finished,"{""role"":""context""}"
    job.out,9,slurm-timelimit,CANCELLED AT 2031-02-03 DUE TO TIME LIMIT,"{""role"":""root"",""shape"":""stopped""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, short, when
from forensics.signals._classify import Weight
from forensics.signals.failures import standing
from forensics.signals.timeline import in_order
from forensics.store.run import Run

_SIGNAL = ("external_termination", "a signal from outside")
_KEYBOARD = ("interrupted_by_user", "an interrupt from the keyboard")
_WORDS = {
    "slurm-timelimit": ("time_limit", "the time limit of its job"),
    "lsf-runlimit": ("time_limit", "the run limit of its job"),
    "pbs-walltime": ("time_limit", "the wall-time limit of its job"),
    "wrapper-timeout": ("time_limit", "the time limit of its job"),
    "kube-deadline": ("time_limit", "the deadline of its job"),
    "slurm-preempt": ("preempted", "preemption"),
    "spot-preempted": ("preempted", "preemption"),
    "kube-evicted": ("evicted", "an eviction"),
    "slurm-cancel": ("cancelled", "a cancelled job"),
    "slurm-signal": ("cancelled", "a cancelled job"),
    "slurm-other-reason": ("cancelled", "its scheduler"),
    "slurm-state-stopped": ("cancelled", "its scheduler"),
    "lsf-owner": ("killed_by_owner", "the job's owner"),
    "lsf-admin": ("killed_by_admin", "an administrator"),
    "sigint2": _KEYBOARD,
    "interrupt-caught": _KEYBOARD,
    "caret-c": _KEYBOARD,
    "sighup": ("terminal_closed", "a closed terminal (SIGHUP)"),
}


@rule("STP001", shape=Shape.STOPPED, needs=("events", "metrics"))
def external_stop(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Find the first stop from outside that ended the run."""
    found = in_order(f for f in standing(run) if f.weight == Weight.STOP)
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    telling = next((f for f in found if f.code in _WORDS), first)
    cause, words = _WORDS.get(telling.code, _KEYBOARD if first.cause == _KEYBOARD[0] else _SIGNAL)
    yield Finding(
        rule="STP001",
        shape=Shape.STOPPED,
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        title=f"the run was stopped by {words}{when(onset)}: {short(first.quote)}",
        because="the program, its launcher or the scheduler says so, and no later step was logged",
        evidence=evidence_of(found),
        onset=onset,
        cause=cause,
        causal=Causal.ROOT,
        numbers={"messages": len(found)},
        next=("resume from the last checkpoint",),
    )
