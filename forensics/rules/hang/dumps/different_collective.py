"""Collectives that differ at one place of the sequence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import ceil, prod
from typing import Any, cast

from forensics.analyses.hang.collectives import Entry, timed_out_in
from forensics.analyses.hang.complaints import complaints, placed
from forensics.analyses.hang.differs import Difference, first_difference, kind_cause, slip_by_steps
from forensics.analyses.hang.waits import newest
from forensics.case.errors.failures import Failure
from forensics.case.rank_spans import FEWEST_THAT_VOTE, ranks_do, ranks_text
from forensics.case.world import world
from forensics.knowledge.sizes import element_bytes
from forensics.patterns import lazily
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues, of_entry
from forensics.rules.kit import Run

_SIZES = lazily(r"op\.preamble\.length <= op\.nbytes\. (?P<got>\d+) vs (?P<want>\d+)")
#: A buffer that is smaller than the message by more than this factor is no half or quarter of it.
_TINY = 16
_SHOWN = 4


@gives_clues("HNG005 different-collective")
def different_collective(run: Run) -> Iterator[Clue]:
    """The first difference in dumps, and what a message of the wrong size tells."""
    aborted = _aborted(run)
    if aborted is not None:
        clue = _of_sizes(run, *aborted)
        yield clue
        if clue.ranks:
            return
    found = first_difference(run)
    if found is not None:
        yield _of_difference(found)
    else:
        yield from _of_watchdogs(run)


def _of_difference(found: Difference) -> Clue:
    sides = " against ".join(ranks_text(side) for side in sorted(found.sides, key=len))
    why = f"{sides}: another {found.kind} at seq {found.seq} of group {found.group}"
    tied = () if found.odd else tuple(sorted(r for side in found.sides for r in side))
    proof = sorted(found.entries, key=lambda e: (e.rank not in found.odd, e.rank))[:_SHOWN]
    return Clue(found.odd, found.cause, 6, "recorder", why, tuple(of_entry(e) for e in proof), tied)


def _of_watchdogs(run: Run) -> Iterator[Clue]:
    """The first number in which most watchdogs found one operation, and the others another."""
    late = complaints(run).late
    for seq, ops in timed_out_in(run).items():
        (best, count), *others = Counter(ops[rank] for rank in ops.keys() & late.keys()).most_common() or [("", 0)]
        odd = tuple(rank for rank, op in ops.items() if rank in late and op != best)
        if not others or len(odd) + count < FEWEST_THAT_VOTE or count <= len(odd):
            continue
        cause = kind_cause("op", Counter((op, "", "") for op in ops.values()))
        why = f"{ranks_do(odd, 'wait')} in {ops[odd[0]]} at seq {seq}, while {count} ranks wait in {best}"
        proof = sorted(ops.keys() & late.keys(), key=lambda rank: (rank not in odd, rank))[:_SHOWN]
        yield Clue(odd, cause, 6, "log", why, tuple(of_failure(late[rank]) for rank in proof))
        return


def _aborted(run: Run) -> tuple[Failure, int, int] | None:
    """The first rank that got more bytes than its buffer holds."""
    for failure in placed(run):
        hit = _SIZES.search(failure.quote) or _SIZES.search(failure.message)
        if hit is not None and failure.rank is not None:
            return failure, int(hit["got"]), int(hit["want"])
    return None


def _of_sizes(run: Run, failure: Failure, got: int, want: int) -> Clue:
    """Choose between the rank that aborted and the neighbour that sent to it (in gloo's ring, the next rank)."""
    everyone = world(run)
    me = failure.rank if failure.rank is not None else 0
    sender = (me + 1) % max(len(everyone), 1)
    kinds = newest(run)
    size = len(everyone)
    fits_want = [e for e in kinds if want in _segments(e, size)]
    fits_got = [e for e in kinds if got in _segments(e, size)]
    odd: tuple[int, ...] = ()
    # recorded of more ranks than the shape of the buffer is, the aborted rank included
    more = len({e.rank for e in fits_got}) > len({e.rank for e in fits_want}) + 1
    mine = more if fits_want else bool(fits_got) or (not kinds and got > want * _TINY)
    if size > 2 and (mine or fits_want):
        odd = (me,) if mine else (sender,)
    dtypes = {e.dtype for e in kinds}
    plain = "collective_mismatch_dtype" if len(dtypes) > 1 else "collective_mismatch_size"
    cause = slip_by_steps(run, odd or (me,), plain)
    why = f"rank {me} got {got} bytes into a buffer of {want}: it or the rank that sent to it issued another collective"
    proof = (of_failure(failure), *(of_entry(e) for e in kinds[: _SHOWN - 1]))
    return Clue(odd, cause, 6 if odd else 2, "log", why, proof, () if odd else tuple(sorted({me, sender})))


def _segments(entry: Entry, ranks: int) -> set[int]:
    """Byte lengths of the messages that gloo's ring cuts an operation into."""
    try:
        shapes: Any = json.loads(entry.sizes or "[]")
    except ValueError:
        return set()
    width = element_bytes(entry.dtype) or 0
    lists = cast("list[list[int]]", shapes) if isinstance(shapes, list) else []
    count = sum(prod(shape) for shape in lists)
    return {ceil(count / parts) * width for parts in (1, ranks, 2 * ranks) if count and parts}
