"""CRH001 uncaught-exception: an exception of the program's own ended the run.

What it detects: a traceback (or a root error signature) that is not about memory, not about a lost peer, not a launcher
repeating a worker's error, and not somebody's stop.

Why it matters: the first such error names the line to fix; the errors of other ranks are usually its echo.

How it decides: the earliest one over all ranks that the run did not survive: no later training steps by the same rank,
and no success marker after it.

What else looks like this: tracebacks that a library logs and catches (optional imports, compile fall-backs), and
exceptions raised while a stopped or finished run is torn down.

What to do next: open the last frame of the program's own code that the evidence names.

References: Python documentation, "Errors and Exceptions"; torch.distributed.elastic "Error Propagation".

Example:
    ```events source,line,code,text,attrs
    train.log,9,traceback,ValueError: bad width,"{""role"":""root"",""exc"":""ValueError"",""message"":""bad width""}"
    ```
    => CRH001 error confidence=high cause=uncaught_exception errors=1
Not this:
    ```events source,line,code,text,attrs
    train.log,9,traceback,KeyboardInterrupt,"{""role"":""root"",""exc"":""KeyboardInterrupt""}"
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.case.errors.exits import exits
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight, death_of
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import all_ranks
from forensics.case.world import world
from forensics.knowledge.errors import ErrorLine, row_of
from forensics.knowledge.suspects import suspect
from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, said, short, when, who
from forensics.store.run import Run

#: Ranks of one program reach the same line within this time.
_TOGETHER_NS = 5_000_000_000
_DIGITS = re.compile(r"\d+")
_OF_PROGRAM = "the error is the program's own, and neither later steps nor a success marker follow it"
_OF_HOST = "the driver or the kernel reported it, and neither later steps nor a success marker follow it"


@rule(shape=Shape.CRASH, needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"))
def uncaught_exception(run: Run) -> Iterator[Finding]:
    """Find the first exception of the program's own that the run did not survive."""
    found = in_order(
        f for f in standing(run) if f.shape == "crash" and f.weight >= Weight.ECHO and not death_of(f.code)
    )
    own = tuple(f for f in found if f.weight == Weight.OWN) or found
    if not own:
        return
    first = own[0]
    onset = onset_of(run, first)
    everyone = world(run)
    all_alike = len(everyone) > 1 and frozenset(ranks_of([f for f in own if _alike(f, first)])) == everyone
    several = len(everyone) > 1 and not all_alike
    whoever = all_ranks(len(everyone)) if all_alike else who(first.rank)
    known = row_of(first.code, said(first))
    fault, named = _fault(run, own, known)
    yield uncaught_exception.finding(
        severity=Severity.ERROR,
        confidence=Confidence.HIGH if first.weight == Weight.OWN else Confidence.MEDIUM,
        title=f"{_what(first, fault, whoever)}{when(onset)}",
        because=_OF_HOST if fault else _OF_PROGRAM,
        evidence=evidence_of(own),
        onset=onset,
        culprits=() if all_alike else ranks_of(own[:1]) or named,
        cause=_cause(first, several=several),
        causal=Causal.ROOT if first.weight == Weight.OWN else Causal.SYMPTOM,
        numbers={"errors": len(own)},
        likely=tuple(filter(None, (known.why if known else "", first.where))),
        next=(*((known.fix,) if known else ()), "open the last frame of your own code, which the evidence names"),
    )


def _what(first: Failure, fault: str, whoever: str) -> str:
    """Say what failed: a device or a link by the host's own words, else the program by those of its error."""
    return fault or f"{whoever} {'raised' if first.exception else 'failed with'} {short(said(first))}"


def _fault(run: Run, own: tuple[Failure, ...], known: ErrorLine | None) -> tuple[str, tuple[int, ...]]:
    """Give the fault of a device or a link that a line of the host proves, and the rank that it names.

    Where the line names no process of the launcher's list, it is the device of the one rank that failed by itself.
    """
    clue, hit = (known.clue, known.compiled.search(own[0].quote)) if known is not None else (None, None)
    if clue is None or hit is None or clue.by != "host" or not clue.holds(hit):
        return "", ()
    named = hit.groupdict()
    place = f" ({named['pci']})" if named.get("pci") else ""
    pid = named.get("pid") or ""
    ranks = tuple(
        sorted(end.rank for end in exits(run).by_rank.values() if end.pid is not None and str(end.pid) == pid)
    )
    alone = ranks_of(own)
    return f"{clue.words}{place}, by the log of its host", ranks or (alone if len(alone) == 1 else ())


def _alike(one: Failure, other: Failure) -> bool:
    """Whether two ranks failed together by the same words, numbers aside: the program is at fault, not a rank."""
    if one.t_ns is not None and other.t_ns is not None and abs(one.t_ns - other.t_ns) > _TOGETHER_NS:
        return False
    return one.exception == other.exception and _DIGITS.sub("", one.message) == _DIGITS.sub("", other.message)


def _cause(failure: Failure, *, several: bool) -> str:
    of_one_rank = suspect(failure.cause).of_one_rank if several and failure.rank is not None else ""
    return of_one_rank or failure.cause
