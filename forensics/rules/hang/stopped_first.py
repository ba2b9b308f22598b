"""Ranks whose records end before those of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forensics.analyses.hang.last_seen import Pace, paces, stopped_first
from forensics.case.rank_spans import ranks_do
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Locator, Run
from forensics.stats.spread import median_of

_SHOWN = 2


@gives_clues("HNG025 stopped-first", "events facts metrics progress sources")
def stopped_before(run: Run) -> Iterator[Clue]:
    """One clue where less than half of the ranks lack a record that most others have."""
    behind, known = stopped_first(run), paces(run)
    if behind:
        reached = median_of([pace.last for pace in known.values()])
        has = f"no record after step {known[behind[0]].last}, and most others reach step {reached:.0f}"
        why = f"{ranks_do(behind, 'have')} {has}"
        yield Clue(behind, "never_entered", 4, "log", why, tuple(_proof(known, behind)))


def _proof(known: Mapping[int, Pace], behind: tuple[int, ...]) -> Iterator[Evidence]:
    furthest = max(known, key=lambda rank: known[rank].last)
    for rank in (*behind[:_SHOWN], furthest):
        pace = known[rank]
        yield Evidence(
            pace.source, Locator(line=pace.line), f"rank {rank}: step {pace.last}", pace.last, rank, pace.t_ns
        )
