"""The first operation in which ranks differ, by majority and not by the first rank, and whether a sequence slipped.

Two ranks differ when at one (group, number) their operation, their shapes (where the operation asks for equal ones) or
their element type differ. A sequence slipped when the odd rank's next operation is what the others have now (it issued
an extra one), or when it has now what the others have next (it skipped one). Where entries cannot tell, steps can: a
rank that came further in steps with as many operations skipped one, a rank that is behind issued an extra one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl
from msgspec import Struct

from forensics.analyses.hang.collectives import Entry, Key, entry_of, recorded
from forensics.analyses.hang.last_seen import last_seen
from forensics.case.rank_spans import listed
from forensics.case.world import world
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived

Signature = tuple[str, str, str]


class Difference(Struct, frozen=True):
    """Ranks that differ at one operation: `odd` is the minority, empty for a tie of `sides`."""

    group: str
    seq: int
    kind: str
    odd: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]
    entries: tuple[Entry, ...]
    cause: str


@derived
def first_difference(run: Run) -> Difference | None:
    """Give the earliest difference of all groups, None when ranks agree as far as they are recorded."""
    told = recorded(run)
    if told.rows.height == 0:
        return None
    everyone = tuple(sorted(world(run)))
    marked = told.rows.filter(~pl.col("p2p")).with_columns(
        shape=pl.when(pl.col("op").str.contains(words_for("operation_of_unequal_shapes")))
        .then(pl.lit(""))
        .otherwise(pl.col("in_sizes"))
    )
    places = (
        marked.group_by("group", "ranks", "seq")
        .agg(
            n=pl.struct("op", "shape", "dtype").n_unique(), at=pl.col("created_ns").min(), who=pl.col("rank").n_unique()
        )
        .filter((pl.col("n") > 1) & (pl.col("who") > 1))
        .sort("at", "seq", "group", nulls_last=True)
        .head(1)
    )
    if places.height == 0:
        return None
    group, ranks, seq = places.row(0)[:3]
    key: Key = (group, listed(ranks) or everyone)
    near = marked.filter(
        (pl.col("group") == group) & (pl.col("ranks") == ranks) & pl.col("seq").is_between(seq, seq + 1)
    )
    at, after = _by_rank(near, key, seq), _by_rank(near, key, seq + 1)
    return _judged(run, key, seq, at, after)


def _by_rank(rows: pl.DataFrame, key: Key, seq: int) -> dict[int, Entry]:
    found: dict[int, Entry] = {}
    for row in rows.filter(pl.col("seq") == seq).sort("rank", "record").iter_rows(named=True):
        found.setdefault(row["rank"], entry_of(row | {"in_sizes": row["shape"]}, key))
    return found


def signature(entry: Entry) -> Signature:
    """The parts of an operation that must be equal over the ranks of a group."""
    return entry.op, entry.sizes, entry.dtype


def _judged(run: Run, key: Key, seq: int, at: Mapping[int, Entry], after: Mapping[int, Entry]) -> Difference:
    votes = Counter(signature(entry) for entry in at.values())
    best, count = votes.most_common(1)[0]
    sides = tuple(tuple(r for r, e in at.items() if signature(e) == s) for s in votes)
    tie = count * 2 <= len(at)
    odd = () if tie else tuple(r for r, e in at.items() if signature(e) != best)
    kind = differing(votes)
    rank = odd[0] if odd else sides[-1][0]
    usual = next(e for e in at.values() if (signature(e) == best) if e.rank != rank)
    cause = _slip(at[rank], usual, after, sides) or slip_by_steps(run, (rank,), kind_cause(kind, votes))
    return Difference(key[0], seq, kind, odd, sides, tuple(at.values()), cause)


def differing(votes: Mapping[Signature, int]) -> str:
    """Give the first part of a signature in which votes differ: op, size or dtype."""
    for i, name in enumerate(("op", "size", "dtype")):
        if len({s[i] for s in votes}) > 1:
            return name
    return "op"


def kind_cause(kind: str, votes: Mapping[Signature, int]) -> str:
    """Give the plain cause of a difference; a barrier on one side only means that loops ended at different steps."""
    if kind == "op" and any("barrier" in s[0] for s in votes):
        return "uneven_data"
    return f"collective_mismatch_{kind}"


def _slip(odd: Entry, usual: Entry, after: Mapping[int, Entry], sides: Sequence[Sequence[int]]) -> str:
    """Compare with the next operation of either side."""
    mine, theirs = after.get(odd.rank), next((after[r] for s in sides for r in s if r in after and r != odd.rank), None)
    if mine is not None and signature(mine) == signature(usual):
        return "extra_collective"
    if theirs is not None and signature(theirs) == signature(odd):
        return "skipped_collective"
    return ""


def slip_by_steps(run: Run, odd: Sequence[int], plain: str) -> str:
    """Refine a cause by the last steps that the odd ranks and the others printed; `plain` where they tell nothing."""
    seen = last_seen(run)
    mine = {s.step for r in odd if (s := seen.get(r)) is not None and s.step is not None}
    theirs = {s.step for r, s in seen.items() if r not in odd and s.step is not None}
    if len(mine) != 1 or len(theirs) != 1 or len(odd) * 2 > len(seen):
        return plain
    ahead = next(iter(mine)) - next(iter(theirs))
    if ahead > 0:
        return "skipped_collective"
    return "extra_collective" if ahead < 0 else plain
