"""Global ranks: which rank a source speaks for, and which ranks the job had.

A launcher's folder `attempt_0/1/` names a LOCAL rank. Where the lines inside state a rank (`[rank5]:`, `rank=5`), that
one is global and wins for every file of the folder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import cast

import polars as pl

from forensics.case.errors.exits import exits
from forensics.case.rank_spans import MOST_RANKS, listed
from forensics.case.series import keys_of
from forensics.store.run import Run

_FOLDER = re.compile(r"^(?P<base>.*?attempt_\d+)/\d+/")
_STATED = r"\[rank(\d{1,6})\]|\brank=(\d{1,6})\b|\bGLOBAL_RANK: (\d{1,6})\b"
_CLIENTS = re.compile(r"\b\d+/(\d{1,6}) clients joined|\bMEMBER: \d+/(\d{1,6})\b")
_SIZE = re.compile(r"world_?size|n_?ranks|num_processes", re.IGNORECASE)


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


def world(run: Run) -> frozenset[int]:
    """List every rank of the job: those that left something, be it an empty file, those of whose end a launcher tells,
    and those that a group or a message counts in.
    """  # noqa: D205 - one sentence over two lines
    return run.derived(_world)


def _world(run: Run) -> frozenset[int]:
    known = stated(run)
    empty = run.scan("sources").filter((pl.col("size") == 0) & pl.col("rank").is_not_null()).select("rank").collect()
    found: set[int] = {*empty["rank"].to_list(), *exits(run).by_rank}
    for table in ("events", "metrics", "collectives", "stack_frames"):
        table_rows = keys_of(run).lazy() if table == "metrics" else run.scan(table)
        rows = table_rows.select("source", "rank").filter(pl.col("rank").is_not_null()).unique().collect()
        found.update(known.get(source, rank) for source, rank in rows.iter_rows())
    for text in run.scan("collectives").select(pl.col("ranks").drop_nulls().unique()).collect()["ranks"]:
        found.update(listed(text))
    found.update(range(_size(run)))
    return frozenset(rank for rank in found if 0 <= rank < MOST_RANKS)


def _size(run: Run) -> int:
    """Size of the job as a store's message or a fact states it, 0 when none does."""
    joined = run.scan("events").filter(pl.col("text").str.contains("clients joined|MEMBER: ")).select("text")
    sizes = [int(hit[hit.lastindex or 0]) for (text,) in joined.collect().iter_rows() if (hit := _CLIENTS.search(text))]
    facts = run.scan("facts").select("key", "value").collect()
    for key, value in facts.iter_rows():
        digits = (value or "").strip('"')
        if key and _SIZE.search(key) and digits.isdigit() and len(digits) < 7:
            sizes.append(int(digits))
    return max(sizes, default=0)
