"""Ranks that say nothing while the others complain."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.complaints import Complaints, complaints, placed
from forensics.analyses.hang.last_seen import last_seen
from forensics.analyses.hang.stacks import stacks
from forensics.case.errors.exits import exits
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order, is_before
from forensics.case.rank_spans import ranks_do, ranks_text
from forensics.case.world import nodes, world
from forensics.knowledge.errors import by_id, telling
from forensics.rules._errors import evidence_of, of_failure, onset_of, ranks_of, when
from forensics.rules.hang.clue import RANKS, Clue, gives_clues, of_seen
from forensics.rules.kit import Evidence, Findings, Run, rule

_SHOWN = 3
#: For each rank that no line names so many complain, and so many at least: of fewer, one may be ended before it can.
_EACH, _FEWEST = 3, 4


@gives_clues("HNG012 silent-rank")
def silent_rank(run: Run) -> Iterator[Clue]:
    """The ranks that do not complain while at least half of the job does.

    Each is known to exist. A number that no line carries proves no rank: a log may be an excerpt, and rank 0 often
    prints without its number. One between those that complain in one file is a rank, as ranks are counted through.
    """
    said = complaints(run)
    everyone = world(run) | _between(said)
    victims = said.victims
    if not victims:
        return
    quiet = everyone - victims - frozenset(said.own) - _waiting(run) - _ended_first(run) - _stopped(run, said)
    if not quiet or len(quiet) * 2 > len(everyone):
        return
    ranks = tuple(sorted(quiet))
    gone = bool(said.closed) and not said.late and not quiet <= stacks(run).keys()
    cause, words = ("silent_death", "died or left") if gone else ("never_entered", "did not come")
    lost = _lost_node(run, quiet, victims)
    if lost:
        cause = "node_loss"
    whose = " (one node)" if lost else ""
    why = f"{ranks_do(sorted(victims), 'complain of a peer')}; {ranks_text(ranks)}{whose} {words}"
    yield Clue(ranks, cause, 4 if gone else 3, "log", why, _proof(run, said, ranks))


def _between(said: Complaints) -> frozenset[int]:
    """The few ranks that are missing between those that complain in one file."""
    victims = said.victims
    told = [one for kind in (said.closed, said.late) for rank, one in kind.items() if rank in victims]
    if len({one.source for one in told}) != 1:
        return frozenset()
    missing = frozenset(range(min(victims), max(victims))) - victims
    return missing if len(victims) >= max(_FEWEST, _EACH * len(missing)) else frozenset()


def _waiting(run: Run) -> frozenset[int]:
    """Ranks that were seen waiting themselves."""
    held = frozenset(r for r, entries in recorded(run).pending.items() if entries)
    return held | frozenset(r for r, s in stacks(run).items() if s.inside)


def _ended_first(run: Run) -> frozenset[int]:
    """Ranks that could not complain: those that aborted, and, when some aborted, those that were ended for it."""
    ends = exits(run).by_rank
    aborted = frozenset(r for r, e in ends.items() if e.code in (-6, 134))
    return aborted | frozenset(r for r, e in ends.items() if aborted and e.code == -15)


def _stopped(run: Run, said: Complaints) -> frozenset[int]:
    """Ranks that say that somebody stopped them, and not only after the others had missed them."""
    cries = [f for kind in (said.closed, said.late) for f in kind.values()]
    stops = (f for f in placed(run) if f.weight == Weight.STOP and f.rank is not None)
    return frozenset(f.rank for f in stops if f.rank is not None and not any(is_before(cry, f) for cry in cries))


def _lost_node(run: Run, quiet: frozenset[int], victims: frozenset[int]) -> bool:
    """Whether the silent ranks are all the ranks of some node, and the launcher lists none of them."""
    of = nodes(run)
    homes = {of.get(r) for r in quiet}
    whole = all({r for r, home in of.items() if home == h} <= quiet for h in homes)
    apart = not homes & {of.get(r) for r in victims} and not quiet & exits(run).by_rank.keys()
    return len(quiet) > 1 and None not in homes and whole and apart


def _proof(run: Run, said: Complaints, ranks: tuple[int, ...]) -> tuple[Evidence, ...]:
    cries = [f for kind in (said.closed, said.late) for f in kind.values()]
    cries.sort(key=lambda f: (f.t_ns is None, f.t_ns or 0, f.source, f.at))
    seen = last_seen(run)
    last = (of_seen(seen[r]) for r in ranks[:_SHOWN] if r in seen and seen[r].source)
    return (*map(of_failure, cries[:_SHOWN]), *last)


@rule("HNG001 log-says-hang", RANKS, severity="error", confidence="medium")
def log_says_hang(run: Run) -> Findings:
    """Find time-outs that ended the run, and the ranks that did not report one."""
    found = in_order(f for f in placed(run) if f.shape == "hang")
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    victims = set(ranks_of(found))
    silent = tuple(rank for clue in silent_rank.find(run) for rank in clue.ranks)
    named = silent if len(silent) < len(victims) else ()
    whose = ranks_text(sorted(victims - {*named})) if victims else "the run"
    blame = f"; {ranks_text(named)} reported nothing" if named else ""
    did, by = "timed out waiting for the others", "a watchdog or a time-out reported it"
    if first.code in telling("joining"):
        did, by = "logged nothing after it began to join the others", "the last line is of joining"
    elif first.weight == Weight.OWN or first.code in telling("waiting"):
        did, by = "was still waiting where its log ends", "its last lines say what it waits for"
    row = by_id().get(first.code)
    told = row.words if row is not None and row.words and not victims else f"{whose} {did}"
    yield log_says_hang.finding(
        f"{told}{when(onset)}{blame}",
        f"{by}, and no later step was logged",
        evidence_of(found),
        onset,
        culprits=named,
        cause="never_entered" if named else first.cause,
        causal="root" if first.weight >= Weight.ECHO else "symptom",
        numbers={"reports": len(found), "ranks_reporting": len(victims), "ranks_silent": len(named)},
    )
