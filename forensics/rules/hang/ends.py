"""Ranks that ended by themselves: by a signal, an exit code, or an exception."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.last_seen import last_seen
from forensics.analyses.hang.origin import is_disputed, unexplained_exit
from forensics.analyses.hang.stacks import stacks
from forensics.case.errors.exits import NONZERO, Exit, Exits, cause_of, exits
from forensics.case.errors.kinds import UNKNOWN, Weight
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import ranks_do, ranks_text
from forensics.case.world import nodes, world
from forensics.knowledge.errors import of_host
from forensics.knowledge.signals import is_aborted, is_asked, is_killed, is_sent, signal_of
from forensics.knowledge.suspects import suspect
from forensics.rules._errors import of_failure, said, short
from forensics.rules.hang.clue import Clue, gives_clues, of_seen
from forensics.rules.kit import Evidence, Locator, Run

_SHOWN = 4


@gives_clues("HNG011 died-silently")
def died(run: Run) -> Iterator[Clue]:
    """Deaths by a signal, forced kills and absent ranks."""
    told = exits(run)
    dead = [e for e in told.by_rank.values() if is_killed(e.code) and not e.forced]
    own = [e for e in dead if not is_sent(e.code)]
    dead = (own or dead) + _aborted(run, told)  # a launcher kills those that are left
    stuck = [e for e in told.by_rank.values() if e.forced]
    everyone = world(run)
    if stuck and len(stuck) < max(2, len(everyone)):
        ranks = tuple(sorted(e.rank for e in stuck))
        why = f"{ranks_text(ranks)} did not react to SIGTERM and had to be killed by the launcher"
        yield Clue(ranks, "host_stall", 5, "exit", why, _ended(stuck))
    codes = {e.code for e in dead}
    if len(dead) * 2 >= len(everyone) and len(dead) > 1 and len(codes) == 1:
        signal = signal_of(min(codes))
        name = "a signal" if signal is None else signal.name
        why = f"{len(dead)} of {len(everyone)} ranks died of {name}: no single rank is the cause"
        yield Clue((), "crash_all_ranks", 7, "exit", why, _ended(dead))
    else:
        for end in dead:
            why = f"rank {end.rank} ended with code {end.code}"
            yield Clue((end.rank,), cause_of(end.code), 6, "exit", why, _ended([end]), stated=True)
    yield from _absent(run, told)
    yield from _nonzero(run)


def _aborted(run: Run, told: Exits) -> list[Exit]:
    """Give the one rank that aborted and complains of no peer, where the launcher ended all others for it."""
    ends = told.by_rank.values()
    aborted = [e for e in ends if is_aborted(e.code)]
    others = [e for e in ends if not (is_aborted(e.code) or is_asked(e.code))]
    if len(aborted) != 1 or others or aborted[0].rank in complaints(run).victims:
        return []
    # a watchdog aborts its own process: a time-out of an unknown rank is above the abort
    late = [one for one in complaints(run).unplaced if one.weight == Weight.TIMEOUT and one.source == aborted[0].source]
    line = aborted[0].line
    return [] if line is not None and any(one.at < line for one in late) else aborted


def _nonzero(run: Run) -> Iterator[Clue]:
    """A worker that ended with a code of its own before anything else failed."""
    end = unexplained_exit(run)
    if end is None or end.rank is None or end.alike or is_disputed(run, end):
        return
    proof = Evidence(end.source, Locator(line=end.line), end.quote.strip(), rank=end.rank, t_ns=end.t_ns)
    why = f"rank {end.rank} ended with exit code {end.code}"
    yield Clue((end.rank,), NONZERO, 6, "exit", why, (proof,), stated=True)


def _absent(run: Run, told: Exits) -> Iterator[Clue]:
    """Ranks in no list of failures, though their node has one, and those between its ranks, where none ended alive."""
    ends = told.listed
    if not ends or told.ended_alive or any(e.code not in (1, -15, -6) for e in told.by_rank.values()):
        return
    of = nodes(run)
    covered = {of.get(rank) for rank in ends}
    seen = last_seen(run)
    everyone = world(run) | told.left_out
    silent = {r for r in everyone - told.by_rank.keys() if of.get(r) in covered}
    gone = (silent | told.left_out) - stacks(run).keys()
    if not gone or len(gone) * 2 > len(everyone):
        return
    ranks, first = tuple(sorted(gone)), next(iter(ends.values()))
    words = f"the launcher lists failures of {ranks_text(sorted(ends))}"
    last = (of_seen(seen[r]) for r in ranks[:_SHOWN] if r in seen and seen[r].source)
    proof = (Evidence(first.source, Locator(line=first.line), words), *last)
    why = f"{ranks_do(ranks, 'are in no list of failures')}, so that the exit code was 0"
    yield Clue(ranks, "early_exit", 5, "exit", why, proof, stated=True)


def _ended(ends: Sequence[Exit]) -> tuple[Evidence, ...]:
    return tuple(Evidence(e.source, Locator(line=e.line), e.quote.strip(), rank=e.rank) for e in ends[:_SHOWN])


@gives_clues("HNG013 first-exception")
def first_exception(run: Run) -> Iterator[Clue]:
    """The earliest own error, when few ranks have one."""
    own = complaints(run).own
    if not own or len(own) * 2 >= max(3, len(world(run))):
        return
    first = in_order(own.values())[0]
    if first.rank is None or first.code in of_host():
        return
    what = short(said(first)) if first.exception else f"an error: {short(first.quote)}"
    cause = "" if first.shape in {"oom", "nan"} else suspect(first.cause or UNKNOWN[2]).of_one_rank
    why = f"rank {first.rank} raised {what}"
    yield Clue((first.rank,), cause or first.cause, 7, "log", why, (of_failure(first),))
