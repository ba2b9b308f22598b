"""The checkpoints that the ranks of one start say that they loaded."""

from __future__ import annotations

from collections import Counter

import polars as pl
from msgspec import Struct

from forensics.case.rank_spans import FEWEST_THAT_VOTE
from forensics.knowledge.errors import telling
from forensics.rules.kit import Evidence, Run, event_evidence


class Apart(Struct, frozen=True):
    """Ranks that loaded another step than most, that step, the one of most, and a line of either side."""

    odd: tuple[int, ...]
    step: int
    usual: int
    proof: tuple[Evidence, Evidence]


def loaded_apart(run: Run) -> Apart | None:
    """Give the few ranks whose last start loaded another step than that of the most, where all say it as often."""
    said = pl.col("code").is_in(telling("resumed")) & pl.col("rank").is_not_null() & pl.col("step").is_not_null()
    rows = run.scan("events").filter(said).sort("source", "line", "seq").collect()
    rows = rows.unique(["source", "line", "rank"], keep="first", maintain_order=True)
    times = rows.group_by("rank").len()["len"].unique()
    last = {row["rank"]: row for row in rows.iter_rows(named=True)}
    if len(last) < FEWEST_THAT_VOTE or len(times) != 1:
        return None
    (usual, most), *others = Counter(row["step"] for row in last.values()).most_common()
    if len(others) != 1 or most * 2 <= len(last):
        return None
    odd = tuple(sorted(rank for rank, row in last.items() if row["step"] != usual))
    other = next(row for row in last.values() if row["step"] == usual)
    return Apart(odd, others[0][0], usual, (event_evidence(last[odd[0]]), event_evidence(other)))
