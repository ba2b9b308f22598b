"""CRH004 worker-exit: a worker ended with a non-zero exit code, and no line says why.

What it detects: the launcher's report that a worker of its group ended with an exit code that is neither a signal's nor
a stop's, where no error stands before it.

Why it matters: what comes after it is consequence. The groups that the launcher starts anew wait for each other, run
into time-outs of the store and of the rendezvous, and print most of the log.

How it decides: of the ends of worker groups the one after which no group trained any more, if no error, time-out or
stop stands before it. The rank is the one that the launcher names; nobody is named where several ended alike with exit
code 1.

What else looks like this: an error whose traceback went to another file; a program that ends itself with a code of its
own when a check fails, or when a scheduler asks it to save and leave.

What to do next: look for `sys.exit`, `os._exit` and this code in the program, and read that worker's own output.

References: PyTorch, torch.distributed.elastic, "Error Propagation" and "torchrun", `--max-restarts`, `--redirects`.

Example:
    ```events source,line,code,text,attrs
    job.log,9,elastic-exitcode,failed (exitcode: 3) local_rank: 2 (pid: 77) of binary: python3,"{""role"":""context""}"
    ```
    => CRH004 error confidence=medium rank=2 cause=exit_nonzero causal=symptom exit_code=3 ends_of_groups=1
Not this:
    ```events source,line,code,text,attrs
    job.log,5,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    job.log,9,elastic-exitcode,failed (exitcode: 1) local_rank: 2 (pid: 77) of binary: python3,"{""role"":""context""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.origin import is_disputed, unexplained_exit
from forensics.case.errors.exits import NONZERO
from forensics.case.errors.launchers import GroupEnd, group_ends
from forensics.case.last_steps import last_step
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import when, who
from forensics.store.run import Run

_RELATED = 3
_ORDINALS = ("first", "second", "third")


@rule(shape=Shape.CRASH, needs=("events", "metrics", "sources"))
def worker_exit(run: Run) -> Iterator[Finding]:
    """Find the exit of a worker that nothing else explains."""
    end = unexplained_exit(run)
    if end is None:
        return
    named = end.rank is not None and not end.alike
    step = last_step(run, end.source, end.line, end.t_ns)
    onset = Onset(step=step, t_ns=end.t_ns, rank=end.rank if named else None, step_lo=step)
    yield worker_exit.finding(
        severity=Severity.ERROR,
        confidence=Confidence.LOW if is_disputed(run, end) else Confidence.MEDIUM,
        title=f"{_who(end)} ended with exit code {end.code}{when(onset)}{_attempt(end)}",
        because="the launcher says so, no error precedes it, and no later group of workers trained",
        evidence=tuple(_evidence(run, end)),
        onset=onset,
        culprits=(end.rank,) if named and end.rank is not None else (),
        cause=NONZERO,
        causal=Causal.SYMPTOM,
        numbers={"exit_code": end.code, "ends_of_groups": len(group_ends(run))},
        likely=("a check in the program that ends it with this code", "an error whose traceback went to another file"),
        next=(
            "look for this exit code in the program, and read that worker's own output",
            "run with `--redirects 3 --tee 3` and put `@record` on the main function, so that the error is kept",
        ),
    )


def _who(end: GroupEnd) -> str:
    if end.alike:
        return "several workers"
    return who(end.rank) if end.rank is not None else f"the worker of local rank {end.local_rank}"


def _attempt(end: GroupEnd) -> str:
    if not end.restarted:
        return ""
    count = _ORDINALS[end.attempt] if end.attempt < len(_ORDINALS) else f"{end.attempt + 1}th"
    return f", which ended the {count} attempt; no later one trained"


def _evidence(run: Run, end: GroupEnd) -> Iterator[Evidence]:
    later = [e for e in group_ends(run) if e.source == end.source and e.line > end.line]
    for place, one in enumerate([end, *later[:_RELATED]]):
        yield Evidence(
            one.source, Locator(line=one.line), one.quote.strip(), rank=one.rank, t_ns=one.t_ns,
            name=one.name, role=EvidenceRole.RELATED if place else EvidenceRole.PRIMARY,
        )  # fmt: skip
