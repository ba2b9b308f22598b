"""CRH006 earlier-run-failed: an earlier attempt of the run failed or was stopped; the verdict is that of the last one.

What it detects: errors and stops after which another process goes on: a requeued job, a launcher's restart, a log to
which a second start was appended.

Why it matters: what ended an earlier attempt is worth knowing and says nothing about the last one. Attempts that all
die at one step are a loop: another restart as it is will end there, too.

How it decides: the error stands in an attempt that a later one went on from, and that later one trained at least three
records, failed or said that it finished. Where the last attempt failed, too, and earlier ones ended at the same step,
within one record of each other, that is called a loop.

What else looks like this: an exception that was caught (see CRH005): there the same process goes on.

What to do next: for the failure of an earlier run, read its lines; give each run a log of its own.

References: Slurm, sbatch(1), `--open-mode`; PyTorch, torch.distributed.elastic, `--max-restarts`.

Example:
    ```metrics source,attempt,line,seq,step,name,value
    a.log,0,1,1,10,loss,2.5
    a.log,0,2,2,40,loss,2.1
    a.log,1,6,6,10,loss,2.6
    a.log,1,7,7,20,loss,2.4
    a.log,1,8,8,30,loss,2.2
    a.log,1,9,9,50,loss,2.0
    ```
    ```events source,line,seq,code,text,attrs
    a.log,4,4,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => CRH006 info confidence=high step=40 step_lo=40 cause=earlier_run_failed causal=context failures=1
Not this: an exception that was caught
    ```metrics source,line,seq,step,name,value
    a.log,1,1,10,loss,2.5
    a.log,6,6,20,loss,2.6
    a.log,7,7,30,loss,2.4
    a.log,8,8,40,loss,2.2
    ```
    ```events source,line,seq,code,text,attrs
    a.log,4,4,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.case.end_markers import marks_of
from forensics.case.endings import loop_words
from forensics.case.errors.failures import Failure, failures
from forensics.case.errors.kinds import Weight
from forensics.case.processes.attempts import attempts
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, said, short, when
from forensics.store.run import Run


@rule(shape=Shape.CRASH, needs=("events", "metrics"))
def earlier_run(run: Run) -> Iterator[Finding]:
    """State what ended the earlier runs of a file."""
    found = [f for f in failures(run) if f.cleared == "earlier"]
    ends = _ends(run, found)
    if not ends:
        return
    first = ends[0]
    onset = onset_of(run, first)
    more = f", and {len(ends) - 1} more of them" if len(ends) > 1 else ""
    loop, again = attempts(run).loop, loop_words(run)
    yield earlier_run.finding(
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        title=f"an earlier attempt ended{when(onset)}{more}{again and f'; {again}'}: {short(said(first))}",
        because="another process went on after it; the verdict is about the last attempt",
        evidence=evidence_of(ends),
        onset=onset,
        culprits=ranks_of(ends),
        cause="earlier_run_failed",
        causal=Causal.CONTEXT,
        numbers={"failures": len(ends)} | ({"loop": len(loop)} if loop else {}),
        next=("give each run a log of its own",) if not loop else ("do not restart it as it is: it dies there again",),
    )


def _ends(run: Run, found: Sequence[Failure]) -> list[Failure]:
    """The most telling failure of each earlier run: those between which no step was logged are of one run."""
    best: dict[tuple[str, int], Failure] = {}
    ending = marks_of(run)
    for failure in found:
        if failure.weight == Weight.WRAPPER:
            continue
        key = (failure.source, ending.steps_of(failure.source).count(before=failure.at))
        if key not in best or failure.weight > best[key].weight:
            best[key] = failure
    return list(best.values())
