"""CRH006 earlier-run-failed: an earlier run in the same file failed; the verdict is that of the last one.

What it detects: errors and stops after which the same file goes on with a run that was started again.

Why it matters: sweeps, requeued jobs and restarts by hand append to one log. What ended an earlier run is worth knowing
and says nothing about the last one.

How it decides: after the error the steps start again below the step that had been reached, and that later run has an
end of its own, or trained past the step at which the earlier one ended. Where the last run has neither, the earlier
failure is the verdict.

What else looks like this: an exception that was caught (see CRH005): there the steps go on where they were.

What to do next: for the failure of an earlier run, read its lines; give each run a log of its own.

References: Slurm, sbatch(1), `--open-mode`; PyTorch, torch.distributed.elastic, `--max-restarts`.

Example:
    ```metrics source,line,seq,step,name,value
    a.log,1,1,10,loss,2.5
    a.log,2,2,40,loss,2.1
    a.log,6,3,10,loss,2.6
    a.log,7,4,20,loss,2.4
    a.log,8,5,30,loss,2.2
    a.log,9,6,50,loss,2.0
    ```
    ```events source,line,code,text,attrs
    a.log,4,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => CRH006 info confidence=high step=40 step_lo=40 cause=earlier_run_failed causal=context failures=1
Not this: an exception that was caught
    ```metrics source,line,seq,step,name,value
    a.log,1,1,10,loss,2.5
    a.log,6,3,20,loss,2.6
    a.log,7,4,30,loss,2.4
    a.log,8,5,40,loss,2.2
    ```
    ```events source,line,code,text,attrs
    a.log,4,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, said, short, when
from forensics.signals._classify import Weight
from forensics.signals.endings import ending_of
from forensics.signals.failures import Failure, failures
from forensics.store.run import Run


@rule("CRH006", shape=Shape.CRASH, needs=("events", "metrics"))
def earlier_run(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """State what ended the earlier runs of a file."""
    found = [f for f in failures(run) if f.cleared == "earlier"]
    ends = _ends(run, found)
    if not ends:
        return
    first = ends[0]
    onset = onset_of(run, first)
    more = f", and {len(ends) - 1} more of them" if len(ends) > 1 else ""
    yield Finding(
        rule="CRH006",
        shape=Shape.CRASH,
        severity=Severity.INFO,
        confidence=Confidence.HIGH,
        title=f"an earlier run in this file failed{when(onset)}{more}: {short(said(first))}",
        because="the steps start again after it; the verdict is that of the last run in the file",
        evidence=evidence_of(ends),
        onset=onset,
        culprits=ranks_of(ends),
        cause="earlier_run_failed",
        causal=Causal.CONTEXT,
        numbers={"failures": len(ends)},
        next=("give each run a log of its own",),
    )


def _ends(run: Run, found: Sequence[Failure]) -> list[Failure]:
    """The most telling failure of each earlier run: those between which no step was logged are of one run."""
    best: dict[tuple[str, int], Failure] = {}
    ending = ending_of(run)
    for failure in found:
        if failure.weight == Weight.WRAPPER:
            continue
        key = (failure.source, ending.steps_of(failure.source).count(before=failure.at))
        if key not in best or failure.weight > best[key].weight:
            best[key] = failure
    return list(best.values())
