"""Processes that are gone: by a signal, by an exit code of their own, or by what their peers say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.origin import is_disputed, unexplained_exit
from forensics.analyses.hang.stacks import stacks
from forensics.analyses.memory.host_deaths import KILLED
from forensics.case.end_markers import marks_of
from forensics.case.errors.exits import NONZERO, exits
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight, death_of
from forensics.case.errors.launchers import GroupEnd, first_on_host, group_ends
from forensics.case.errors.named import many_hosts
from forensics.case.errors.timeline import in_order
from forensics.case.last_steps import last_step
from forensics.case.world import world
from forensics.knowledge.reports import report
from forensics.patterns import lazily
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, proof, rule
from forensics.values import replace

_BLOCK = lazily(r"^\W*(?:exitcode|traceback)\s*:")
_LOCAL_RANK = lazily(r"\blocal_rank: (\d{1,6})\b")
#: The same in the command that DeepSpeed's launcher prints; each of its nodes begins with 0.
_OF_COMMAND = lazily(r"--local[_-]rank[=', ]{1,4}(\d{1,6})\b.{0,400}exits with return code")


@rule("CRH002 signal-death", "events facts metrics", severity="error", confidence="medium")
def signal_death(run: Run) -> Findings:
    """Find the first process that died of a signal."""
    found = in_order(f for f in standing(run) if death_of(f.code, f.cause))
    if not found:
        return
    first = _placed(run, found)
    onset = onset_of(run, first)
    killed = first.cause == KILLED
    done = None if killed else _finished_before(run, first)
    yield signal_death.finding(
        f"{who(first.rank)} {death_of(first.code, first.cause)}"
        + (when(onset) if done is None else " after training had finished"),
        "its exit code or the launcher says so, and no later step was logged"
        if done is None
        else "a success marker precedes it, and nothing was trained between them: only the way out failed",
        proof(*evidence_of((first, *(f for f in found if f.at != first.at or f.source != first.source))), done),
        onset,
        severity="error" if done is None else "warning",
        culprits=ranks_of((first,)),
        cause=first.cause,
        causal="symptom" if killed else "root",
        likely=("the kernel's memory killer", "a scheduler or a person") if killed else (),
        next=("read the kernel log and the scheduler's record of that minute",)
        if done is None
        else ("load the last checkpoint once: where it is whole, nothing has to be trained again",),
    )


def _finished_before(run: Run, death: Failure) -> Evidence | None:
    """Give the success marker of the same log after which a process died, with nothing trained between them."""
    mark = marks_of(run).success_for(death.source, death.at, death.t_ns)
    if mark is None or mark.source != death.source or mark.at > death.at:
        return None
    return Evidence(mark.source, Locator(mark.line, mark.byte), mark.quote, t_ns=mark.t_ns)


def _placed(run: Run, found: Sequence[Failure]) -> Failure:
    """Give the first death, preferring the one of the same kind that names its rank, in its words or by its file."""
    same = [f for f in found if f.cause == found[0].cause]
    block = next((f for f in reversed(same) if f.rank is not None and _BLOCK.match(f.quote)), None)
    if block is not None:
        return block
    named = (replace(f, rank=_rank_said(run, f)) if f.rank is None else f for f in same)
    return next((f for f in named if f.rank is not None), found[0])


def _rank_said(run: Run, death: Failure) -> int | None:
    """Give the rank of the worker that a line names by its local rank, where its host is known or there is one."""
    if (hit := _LOCAL_RANK.search(death.quote)) is not None:
        return int(hit[1])
    if (hit := _OF_COMMAND.search(death.quote)) is None:
        return None
    first = first_on_host(run, death.source, death.quote)
    first = 0 if first is None and not many_hosts(run) else first
    return None if first is None else first + int(hit[1])


@rule("CRH003 peer-lost", "collectives events facts metrics sources stack_frames", severity="error", confidence="low")
def peer_lost(run: Run) -> Findings:
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
    said = complaints(run)
    victims = set(ranks_of(tuple(f for f in found if f.weight == Weight.CLOSED)))
    silent = tuple(sorted(world(run) - victims - said.victims - said.own.keys()))
    alone = tuple(exits(run).by_itself - victims)
    named = silent if victims and len(silent) < len(victims) else alone if len(alone) == 1 else ()
    onset = replace(onset, rank=named[0]) if len(named) == 1 else onset
    # who waits in a collective, or was waited for until the time-out, lived until then: its end follows
    held = any(rank in stacks(run) and stacks(run)[rank].inside for rank in ranks_of(found))
    held = held or (bool(said.late) and not said.closed and said.late.keys().isdisjoint(ranks_of(found)))
    yield peer_lost.finding(
        told.title + when(onset),
        told.because,
        evidence_of(found),
        onset,
        culprits=named,
        cause=told.means,
        causal="root" if told.is_own and not held else "symptom",
        numbers={"reports": len(found)},
        next=(told.next,),
    )


def _is_told_next(failure: Failure, every: Sequence[Failure]) -> bool:
    """Whether a traceback has no last line because the next event of its file holds the words."""
    return report(failure.cause).is_own and any(f.source == failure.source and f.at > failure.at for f in every)


_RELATED = 3
_ORDINALS = ("first", "second", "third")


@rule("CRH004 worker-exit", "events metrics sources", about=unexplained_exit, severity="error", causal="symptom")
def worker_exit(run: Run, end: GroupEnd) -> Findings:
    """Find the exit of a worker that nothing else explains."""
    named = end.rank is not None and not end.alike
    step = last_step(run, end.source, end.line, end.t_ns)
    onset = Onset(step=step, t_ns=end.t_ns, rank=end.rank if named else None, step_lo=step)
    yield worker_exit.finding(
        f"{_who(end)} ended with exit code {end.code}{when(onset)}{_attempt(end)}",
        "the launcher says so, no error precedes it, and no later group of workers trained",
        proof(*_evidence(run, end)),
        onset,
        confidence="low" if is_disputed(run, end) else "medium",
        culprits=(end.rank,) if named and end.rank is not None else (),
        cause=NONZERO,
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
    for one in (end, *later[:_RELATED]):
        place, words = Locator(line=one.line), one.quote.strip()
        yield Evidence(one.source, place, words, rank=one.rank, t_ns=one.t_ns, name=one.name)
