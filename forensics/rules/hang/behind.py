"""Ranks whose own watchdog says that they never enqueued the work in which the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from forensics.analyses.hang.lines import matching
from forensics.case.rank_spans import FEWEST_THAT_VOTE, ranks_text
from forensics.knowledge import errors
from forensics.knowledge.errors import telling
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Run, event_evidence
from forensics.store.run import derived

#: The group of all ranks, by its number and by its name; a line of an older version names no group.
_WHOLE = ("0", "default_pg", "")


class _State(Struct, frozen=True):
    """The last work that a rank enqueued and completed, and where it says so."""

    enqueued: int
    completed: int
    proof: Evidence


@gives_clues("HNG024 behind-the-others", "events")
def behind(run: Run) -> Iterator[Clue]:
    """One clue where at least half of the ranks that tell wait in one piece of work."""
    told = _states(run)
    waiting = {rank: state for rank, state in told.items() if state.completed < state.enqueued}
    if len(told) < FEWEST_THAT_VOTE or len(waiting) * 2 < len(told):
        return
    awaited = min(state.completed for state in waiting.values()) + 1
    late = tuple(sorted(rank for rank, state in told.items() if state.enqueued < awaited))
    if not late:
        return
    why = f"{ranks_text(late)} enqueued no work past {told[late[0]].enqueued}, and the others wait in {awaited}"
    proof = [told[rank].proof for rank in late[:2]] + [waiting[rank].proof for rank in sorted(waiting)[:2]]
    yield Clue(late, "never_entered", 5, "log", why, tuple(proof))


@derived
def _states(run: Run) -> Mapping[int, _State]:
    """Give the last state of each rank in the group of all."""
    found: dict[int, _State] = {}
    for line in errors.lines():
        if line.id not in telling("collective_state"):
            continue
        for row, hit in matching(run, line.compiled, *line.needles):
            said = hit.groupdict()
            group = said.get("desc") or said.get("pg") or said.get("pg_id") or ""
            rank = row["rank"] if row["rank"] is not None else int(said["group_rank"] or -1)
            if group in _WHOLE and rank >= 0 and int(said["enqueued"]) >= 0:
                found[rank] = _State(int(said["enqueued"]), int(said["completed"]), event_evidence(row))
    return found
