"""What the rules that read errors share: from judged failures to the parts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case.errors.failures import Failure
from forensics.case.last_steps import last_step, last_time
from forensics.identity import spoken
from forensics.knowledge.libraries import is_library_frame
from forensics.knowledge.restarts import nature_of
from forensics.model import Evidence, EvidenceRole, Locator, Onset
from forensics.store.run import Run

_RELATED = 4
_TITLE_CHARS = 160
#: The text before the frame that raised an error.
_AT = "raised at "


def of_failure(failure: Failure, role: EvidenceRole = EvidenceRole.PRIMARY) -> Evidence:
    """Give the evidence of one judged error, at the exception of its chain that decides."""
    inner = failure.told_line
    return Evidence(
        failure.source,
        Locator(line=failure.line, byte=failure.byte) if inner is None else Locator(line=inner),
        failure.quote if inner is None else said(failure),
        failure.step,
        failure.rank,
        failure.t_ns,
        failure.code,
        role=role,
        apart=" ".join(filter(None, (_site(failure), _announced(failure)))),
    )


def evidence_of(failures: Sequence[Failure]) -> tuple[Evidence, ...]:
    """Turn errors into evidence: the first is primary, a few more and the code that raised it are related."""
    own = _own_frame(failures[0]) if failures else ""
    logged = tuple(_said(f) for f in failures[:1] if f.own_words)
    raised = (*logged, *((_raised(failures[0], own),) if own else ()))
    first, *more = lines_of(failures) or (None,)
    return (first, *raised, *more) if first is not None else ()


def lines_of(failures: Sequence[Failure]) -> tuple[Evidence, ...]:
    """Turn errors into evidence, one for each: the first is primary, a few more are related."""
    related = (of_failure(f, EvidenceRole.RELATED) for f in failures[1 : 1 + _RELATED])
    return (*map(of_failure, failures[:1]), *related)


def _site(failure: Failure) -> str:
    """Where the program raised what is its own fault; what a machine or a network brought comes up anywhere in it."""
    own = _own_frame(failure) if nature_of(failure.cause, failure.shape) == "program" else ""
    return f"{_AT}{own}" if own else ""


def _announced(failure: Failure) -> str:
    """The line that a message announces, where its first one only says that something follows."""
    return failure.more.partition("\n")[0] if failure.message.endswith(":") else ""


def _said(failure: Failure) -> Evidence:
    """What the program logged just before an exception of which nothing is known but its class."""
    place = Locator(line=failure.said_at)
    return Evidence(failure.source, place, failure.said, rank=failure.rank, role=EvidenceRole.RELATED)


def _own_frame(failure: Failure) -> str:
    return next((frame for frame in failure.stack if not is_library_frame(frame)), "")


def _raised(failure: Failure, frame: str) -> Evidence:
    """The innermost frame of the program's own code, at the line where its traceback begins."""
    place = Locator(line=failure.head if failure.head is not None else failure.line)
    return Evidence(failure.source, place, f"{_AT}{frame}", rank=failure.rank, role=EvidenceRole.RELATED)


def onset_of(run: Run, failure: Failure) -> Onset:
    """Say where an error began: its own step, or the last one that its process had reached before it."""
    last = last_step(run, failure.source, failure.at, failure.t_ns, failure.rank)
    step = failure.step if failure.step is not None else last
    t_ns = failure.t_ns
    if t_ns is not None:  # it may belong to an earlier event
        t_ns = max(t_ns, last_time(run, failure.source, failure.at) or t_ns)
    return Onset(step=step, t_ns=t_ns, rank=failure.rank, step_lo=last)


def ranks_of(failures: Sequence[Failure]) -> tuple[int, ...]:
    """List the different ranks that errors name, in order."""
    return tuple(sorted({f.rank for f in failures if f.rank is not None}))


def who(rank: int | None) -> str:
    """Name a rank at the start of a sentence, or the run when there is none."""
    return f"rank {rank}" if rank is not None else "the run"


def when(onset: Onset) -> str:
    """Say at or after which step, or nothing."""
    return f" after step {onset.step}" if onset.step is not None else ""


def said(failure: Failure) -> str:
    """Give the words of an error: its exception and message, else its line."""
    if failure.exception:
        return f"{failure.exception}: {failure.message}" if failure.message else failure.exception
    return failure.quote


def short(text: str) -> str:
    """Cut a message to what fits a title: the own words of its first line, at most 160 characters."""
    line = text.strip().splitlines()[0].strip() if text.strip() else ""
    line = spoken(line) or line
    whole = line[:_TITLE_CHARS].rpartition(" ")[0] or line[: _TITLE_CHARS - 2]
    return line if len(line) <= _TITLE_CHARS else f"{whole} …"
