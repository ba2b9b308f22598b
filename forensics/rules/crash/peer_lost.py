"""CRH003 peer-lost: ranks or a launcher report that a process is gone, and nothing says why.

What it detects: closed and reset connections, aborted communicators, and launchers that repeat a non-zero exit. Where
nothing else stands, also a traceback without its last line, a shell that found no command, and Hydra's hint on a stack
trace that is not in the log.

Why it matters: these lines are written by victims. Alone they prove that something died, not what.

How it decides: such lines in a run that did not go on. Any finding that names a failure of its own explains this one.
A traceback whose last line is missing is the program's own error, of which only the words are lost.

What else looks like this: the tear-down of a run that finished.

What to do next: find the log of the rank that is missing; its last lines hold the cause.

References: torch.distributed.elastic "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,1,nccl-remote-error,remote exited,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    ```
    => CRH003 error confidence=low onset_rank=1 cause=peer_gone causal=symptom reports=1
Not this:
    ```events source,line,code,text,attrs
    a.log,5,success,training complete,"{""role"":""context""}"
    a.log,9,nccl-remote-error,remote exited,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.analyses.hang.complaints import complaints
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order
from forensics.case.world import world
from forensics.knowledge.reports import report
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when
from forensics.store.run import Run


@rule(shape=Shape.CRASH, needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"))
def peer_lost(run: Run) -> Iterator[Finding]:
    """Find complaints that a process is gone."""
    every = standing(run)
    reports = (f for f in every if f.shape == "crash" and f.weight <= Weight.CLOSED)
    found = in_order(f for f in reports if not _is_told_next(f, every))
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    is_alone = len(world(run)) <= 1
    told = report(*(f.cause for f in found), said=tuple(f.quote for f in found) if is_alone else ())
    victims = set(ranks_of(tuple(f for f in found if f.weight == Weight.CLOSED)))
    silent = tuple(sorted(world(run) - victims - complaints(run).victims - complaints(run).own.keys()))
    named = silent if victims and len(silent) < len(victims) else ()
    yield peer_lost.finding(
        severity=Severity.ERROR,
        confidence=Confidence.LOW,
        title=told.title + when(onset),
        because=told.because,
        evidence=evidence_of(found),
        onset=onset,
        culprits=named,
        cause=told.means,
        causal=Causal.ROOT if told.is_own else Causal.SYMPTOM,
        numbers={"reports": len(found)},
        next=(told.next,),
    )


def _is_told_next(failure: Failure, every: Sequence[Failure]) -> bool:
    """Whether a traceback has no last line because the next event of its file holds the words."""
    return report(failure.cause).is_own and any(f.source == failure.source and f.at > failure.at for f in every)
