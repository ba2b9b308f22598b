"""Global ranks: which rank a source speaks for.

A launcher's folder `attempt_0/1/` names a LOCAL rank. Where the lines inside state a rank (`[rank5]:`, `rank=5`), that
one is global and wins for every file of the folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import cast

import polars as pl

from forensics.store.run import Run

_FOLDER = re.compile(r"^(?P<base>.*?attempt_\d+)/\d+/")
_STATED = r"\[rank(\d{1,6})\]|\brank=(\d{1,6})\b|\bGLOBAL_RANK: (\d{1,6})\b"


def folder_of(source: str) -> str | None:
    """The launcher's folder of one worker, None for other paths."""
    hit = _FOLDER.match(source)
    return hit[0] if hit else None


def node_of(source: str) -> str | None:
    """The launcher's folder of one agent (one node), None for other paths."""
    hit = _FOLDER.match(source)
    return hit["base"] if hit else None


def folder_rank(source: str) -> int | None:
    """The local rank in the name of a worker's folder, None for other paths."""
    folder = folder_of(source)
    return int(folder.rstrip("/").rsplit("/", 1)[1]) if folder is not None else None


def stated(run: Run) -> Mapping[str, int]:
    """Global rank of each source whose folder is named by a local rank, where its lines state one."""
    return run.derived(_stated)


def _stated(run: Run) -> dict[str, int]:
    rows = (
        run.scan("events")
        .filter(pl.col("source").str.contains(r"attempt_\d+/\d+/"))
        .select("source", said=pl.col("text").str.extract_groups(_STATED))
        .collect()
    )
    votes: dict[str, Counter[int]] = {}
    for source, said in rows.iter_rows():
        cells = cast("dict[str, str | None]", said or {})
        number = next((v for v in cells.values() if v is not None), None)
        folder = folder_of(source)
        if number is not None and folder is not None:
            votes.setdefault(folder, Counter())[int(number)] += 1
    best = {folder: count.most_common(1)[0][0] for folder, count in votes.items()}
    sources = cast("list[str]", rows["source"].unique().sort().to_list())
    return {s: best[f] for s in sources if (f := folder_of(s)) is not None and f in best}


def corrected(rank: int | None, source: str, known: Mapping[str, int]) -> int | None:
    """Give the global rank of a row: that of its folder's lines, else its own."""
    return known.get(source, rank)


def nodes(run: Run) -> dict[int, str]:
    """Give the launcher folder (one per node and job) of each rank that has one."""
    known = stated(run)
    said = {rank: base for source, rank in known.items() if (base := node_of(source)) is not None}
    # a worker that printed no rank has that of its folder, where the ranks of its agent's other workers are theirs
    if any(folder_rank(source) != rank for source, rank in known.items()):
        return said
    quiet = run.scan("events").filter(pl.col("source").str.contains(r"attempt_\d+/\d+/")).select(
        pl.col("source").unique()
    ).collect()["source"].to_list()  # fmt: skip
    silent = {rank: base for s in quiet if (rank := folder_rank(s)) is not None and (base := node_of(s)) is not None}
    return silent | said
