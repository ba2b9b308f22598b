"""The complaints of ranks: a lost peer, a time-out, or an error of their own.

A rank that complains of a peer is a victim. What it says tells the absent one apart: a closed connection means that a
process died or left, a time-out that it is alive and did not come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from msgspec import Struct

from forensics.case.errors.coded import events_telling
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.launchers import follows
from forensics.case.errors.timeline import is_before
from forensics.case.steps import only
from forensics.case.world import ranks_in_group
from forensics.knowledge.errors import speaking_of, starting
from forensics.knowledge.signals import is_silent
from forensics.store.run import Run, derived
from forensics.values import replace

#: Lines of one failure block that a launcher prints, its stack included.
_BLOCK_LINES = 80


class Complaints(Struct, frozen=True):
    """Complaints by rank, the first of each kind; `own` are errors that blame no peer."""

    closed: Mapping[int, Failure]
    late: Mapping[int, Failure]
    own: Mapping[int, Failure]
    unplaced: tuple[Failure, ...] = ()

    @property
    def victims(self) -> frozenset[int]:
        """Ranks that complain of a peer and of nothing else."""
        return (frozenset(self.closed) | frozenset(self.late)) - frozenset(self.own)


@derived
def complaints(run: Run) -> Complaints:
    """Sort the standing errors by rank and kind."""
    closed: dict[int, Failure] = {}
    late: dict[int, Failure] = {}
    own: dict[int, Failure] = {}
    unplaced: list[Failure] = []
    stalled = [failure for failure in standing(run) if failure.weight == Weight.TIMEOUT]
    for failure in placed(run):
        if failure.weight in (Weight.WRAPPER, Weight.STOP):
            continue
        if failure.code in speaking_of("another") or _consequence(run, failure) or _of_teardown(failure, stalled):
            continue
        kind = late if failure.shape == "hang" else own if failure.weight >= Weight.ECHO else closed
        if failure.rank is None:
            unplaced.append(failure)
        elif kind is own and is_silent(failure.cause):
            continue
        elif failure.rank not in kind or is_before(failure, kind[failure.rank]):
            kind[failure.rank] = failure
    return Complaints(closed, late, own, tuple(unplaced))


@derived
def placed(run: Run) -> tuple[Failure, ...]:
    """Give the standing errors, those inside a launcher's failure block with the rank of the block.

    One that says only its rank inside a group has that rank where the group can be none but the whole job.
    """
    blocks, grouped = _blocks(run), ranks_in_group(run)
    return tuple(
        f if f.rank is not None else replace(f, rank=grouped.get((f.source, f.at), _rank_at(blocks, f)))
        for f in standing(run)
    )


def _consequence(run: Run, failure: Failure) -> bool:
    """Whether it complains of peers, or of its start, in a group that was started after the run had failed."""
    said = failure.shape == "hang" or failure.weight <= Weight.CLOSED or failure.cause in starting()
    return said and follows(run, failure.source, failure.at, failure.t_ns)


def _of_teardown(failure: Failure, stalled: Sequence[Failure]) -> bool:
    """Whether an error that may echo another one follows a time-out: what was there before the stall is gone."""
    if failure.weight != Weight.ECHO:
        return False
    return any(is_before(one, failure) for one in stalled if one.rank != failure.rank)


def _blocks(run: Run) -> dict[str, tuple[list[int], list[int]]]:
    rows = only(events_telling(run, "rank_of_block", order=("source", "line")), "source", "line", "rank")
    found: dict[str, tuple[list[int], list[int]]] = {}
    for source, line, rank in rows.iter_rows():
        if line is None or rank is None:
            continue
        lines, ranks = found.setdefault(source, ([], []))
        lines.append(line)
        ranks.append(rank)
    return found


def _rank_at(blocks: Mapping[str, tuple[list[int], list[int]]], failure: Failure) -> int | None:
    lines, ranks = blocks.get(failure.source, ([], []))
    i = bisect_right(lines, failure.at) - 1
    return ranks[i] if i >= 0 and failure.at - lines[i] <= _BLOCK_LINES else None
