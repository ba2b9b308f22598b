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

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from forensics.analyses.hang.complaints import complaints
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order
from forensics.case.world import world
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when
from forensics.store.run import Run

#: Cause, title, reason and next step of a process that is gone.
_GONE = (
    "peer_gone",
    "peers or the launcher report that a process is gone",
    "only they speak of it, and nothing here says why it is gone",
    "find the log of the process that is missing; its last lines hold the cause",
)
#: The program's own error, of which only the words are missing.
_RAISED = "traceback_cut_short"
#: The same where all reports, by their cause, say more.
_WORDS: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        _RAISED: (
            "uncaught_exception",
            "a traceback without its last line ends the log",
            "the program raised an exception, and its words are lost",
            "look for the exception in the other stream, and in the tracker's own log",
        ),
        "command_not_found": (
            "command_not_found",
            "the shell could not run what its script asks for",
            "the shell says so, and nothing of a program says why else the run ended",
            "look at the line of the script that it names, and at the modules and environment that it loads",
        ),
        "hydra_error": (
            "peer_gone",
            "Hydra ended the program after an error that is not in the log",
            "only Hydra's hint on its stack trace was found",
            "read the lines above it, or run again with HYDRA_FULL_ERROR=1",
        ),
    }
)


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
    alike = all(f.cause == first.cause for f in found)
    cause, title, because, then = _WORDS.get(first.cause, _GONE) if alike else _GONE
    victims = set(ranks_of(tuple(f for f in found if f.weight == Weight.CLOSED)))
    silent = tuple(sorted(world(run) - victims - complaints(run).victims - complaints(run).own.keys()))
    named = silent if victims and len(silent) < len(victims) else ()
    yield peer_lost.finding(
        severity=Severity.ERROR,
        confidence=Confidence.LOW,
        title=title + when(onset),
        because=because,
        evidence=evidence_of(found),
        onset=onset,
        culprits=named,
        cause=cause,
        causal=Causal.ROOT if alike and first.cause == _RAISED else Causal.SYMPTOM,
        numbers={"reports": len(found)},
        next=(then,),
    )


def _is_told_next(failure: Failure, every: Sequence[Failure]) -> bool:
    """Whether a traceback has no last line because the next event of its file holds the words."""
    return failure.cause == _RAISED and any(f.source == failure.source and f.at > failure.at for f in every)
