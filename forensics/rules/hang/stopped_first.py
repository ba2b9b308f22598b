"""Ranks whose records end before those of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forensics.analyses.hang.last_seen import Pace, paces
from forensics.case.rank_spans import FEWEST_THAT_VOTE, ranks_do
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Locator, Run
from forensics.stats.spread import median_of

_SHOWN = 2


@gives_clues("HNG025 stopped-first", "events facts metrics progress sources")
def stopped_first(run: Run) -> Iterator[Clue]:
    """One clue where less than half of the ranks lack a record that most others have."""
    told = paces(run)
    if len(told) < FEWEST_THAT_VOTE:
        return
    reached, lowest = median_of([pace.last for pace in told.values()]), min(pace.last for pace in told.values())
    behind = tuple(rank for rank, pace in told.items() if pace.last == lowest and lowest + pace.every <= reached)
    if not behind or len(behind) * 2 >= len(told):
        return
    why = f"{ranks_do(behind, 'have')} no record after step {lowest}, and most others reach step {reached:.0f}"
    yield Clue(behind, "never_entered", 4, "log", why, tuple(_proof(told, behind)))


def _proof(told: Mapping[int, Pace], behind: tuple[int, ...]) -> Iterator[Evidence]:
    furthest = max(told, key=lambda rank: told[rank].last)
    for rank in (*behind[:_SHOWN], furthest):
        pace = told[rank]
        yield Evidence(
            pace.source, Locator(line=pace.line), f"rank {rank}: step {pace.last}", pace.last, rank, pace.t_ns
        )
