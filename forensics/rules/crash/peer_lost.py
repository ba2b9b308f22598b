"""CRH003 peer-lost: ranks or a launcher report that a process is gone, and nothing says why.

What it detects: closed and reset connections, aborted communicators, and launchers that repeat a non-zero exit.

Why it matters: these lines are written by victims. Alone they prove that something died, not what.

How it decides: such lines in a run that did not go on. Any finding that names a failure of its own explains this one.

What else looks like this: the tear-down of a run that finished.

What to do next: find the log of the rank that is missing; its last lines hold the cause.

References: torch.distributed.elastic "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,1,nccl-remote-error,remote exited,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    ```
    => CRH003 error
Not this:
    ```events source,line,code,text,attrs
    a.log,5,success,training complete,"{""role"":""context""}"
    a.log,9,nccl-remote-error,remote exited,"{""role"":""symptom"",""shape"":""hang"",""cause"":""peer_gone""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, world
from forensics.signals._classify import Weight
from forensics.signals.failures import Failure, standing
from forensics.signals.hang_complaints import complaints
from forensics.signals.timeline import in_order
from forensics.store.run import Run


@rule("CRH003", shape=Shape.CRASH, needs=("events", "metrics"))
def peer_lost(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Find complaints that a process is gone."""
    found = in_order(f for f in standing(run) if f.shape == "crash" and f.weight <= Weight.CLOSED)
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    victims = set(ranks_of(tuple(f for f in found if f.weight == Weight.CLOSED)))
    silent = tuple(sorted(world(run) - victims - complaints(run).victims - complaints(run).own.keys()))
    named = silent if victims and len(silent) < len(victims) else ()
    yield Finding(
        rule="CRH003",
        shape=Shape.CRASH,
        severity=Severity.ERROR,
        confidence=Confidence.LOW,
        title=_title(first) + when(onset),
        because="only its peers or its launcher speak of it",
        evidence=evidence_of(found),
        onset=onset,
        culprits=named,
        cause="peer_gone",
        causal=Causal.SYMPTOM,
        numbers={"reports": len(found)},
        next=("find the log of the process that is missing; its last lines hold the cause",),
    )


def _title(first: Failure) -> str:
    if first.cause == "traceback_cut_short":
        return "a traceback without its last line ends the log"
    return "a process of the run is gone and nothing here says why"
