"""Which hits of one signature are kept of a file: the first, one of each further rank, and the last.

In the log of a large job every rank complains once, and one that is left out would look like the silent one. The hits
that are kept of a file follow from those that are kept of its parts, so that parts may be read apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

#: Of one signature in one file the first 200 and the last 50 hits are kept; the rest is counted.
FIRST_KEPT, LAST_KEPT = 200, 50
#: Beyond these the first hit of each further rank is kept too, until so many ranks were heard.
RANKS_KEPT = 20_000


class Hit(Struct, frozen=True):
    """One hit: the number of its segment and where it begins, and the rank that speaks."""

    seq: int
    byte: int
    rank: int | None


class Flood(Struct, frozen=True):
    """The hits of one signature in a file or a part of it: how many there are, and those that are kept, in order.

    `count` leaves out those that are kept for their rank alone.
    """

    code: str
    count: int
    kept: tuple[Hit, ...]

    @property
    def of_ranks(self) -> int:
        """How many are kept for their rank alone."""
        return len(self.kept) - min(self.count, FIRST_KEPT) - self.last

    @property
    def last(self) -> int:
        """How many are kept as the last ones."""
        return min(max(self.count - FIRST_KEPT, 0), LAST_KEPT)

    @property
    def left_out(self) -> int:
        """How many are not kept."""
        return self.count + self.of_ranks - len(self.kept)


def joined(parts: Iterable[Flood]) -> Flood:
    """The hits of a file from its parts' hits, which are in order and one or more."""
    several = list(parts)
    every = [hit for part in several for hit in part.kept]
    if len(several) == 1 or len(every) <= FIRST_KEPT:
        return Flood(several[0].code, sum(part.count for part in several), tuple(every))
    seen = {hit.rank for hit in every[:FIRST_KEPT] if hit.rank is not None}
    fresh: list[Hit] = []
    rest: list[Hit] = []
    for hit in every[FIRST_KEPT:]:
        if hit.rank is None or hit.rank in seen or len(seen) >= RANKS_KEPT:
            rest.append(hit)
        else:
            seen.add(hit.rank)
            fresh.append(hit)
    last = rest[-LAST_KEPT:]
    kept = sorted((*every[:FIRST_KEPT], *fresh, *last), key=lambda hit: hit.seq)
    total = sum(part.count + part.of_ranks for part in several)
    return Flood(several[0].code, total - len(fresh), tuple(kept))
