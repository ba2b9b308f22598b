"""The recorded collectives of each rank: one dump per rank, its progress in each group, its pending operations.

A rank may have left several dumps (pickled and as JSON, in the stall and at its exit). The one with most pending work
was taken nearest to the stall; gloo calls an operation that timed out completed in a dump taken later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import codes, events_of
from forensics.case.errors.kinds import attributes
from forensics.case.rank_spans import listed
from forensics.case.world import world
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.store.schema import TABLES

#: A group and its members; ranks of a group that no dump lists are all ranks of the job.
Key = tuple[str, tuple[int, ...]]
_DIGITS = lazily(r"\d+")
_KEPT_PER_RANK = 200


class Entry(Struct, frozen=True):
    """One recorded operation of one rank; `peer` is set for a send or a receive, `begun` where its device began it."""

    rank: int
    key: Key
    seq: int
    op: str
    sizes: str
    dtype: str
    done: bool
    source: str
    record: int
    site: str = ""
    peer: int | None = None
    p2p_seq: int | None = None
    gloo: bool = False
    begun: bool = False

    @property
    def words(self) -> str:
        """The operation as one reads it: group, number, name, shapes."""
        return f"{self.op} seq {self.seq} of group {self.key[0]} {self.sizes} {self.dtype}".strip()


class Recorded(Struct, frozen=True):
    """The content of the dumps: their ranks, the progress of each, and its pending operations.

    `timed_out` are the numbers of collectives in which a rank's watchdog found it waiting; it does not name the group.
    """

    ranks: frozenset[int]
    enqueued: Mapping[Key, Mapping[int, int]]
    completed: Mapping[Key, Mapping[int, int]]
    pending: Mapping[int, tuple[Entry, ...]]
    families: Mapping[str, frozenset[int]]
    dumps: Mapping[int, str]
    rows: pl.DataFrame
    timed_out: Mapping[int, frozenset[int]]


@derived
def recorded(run: Run) -> Recorded:
    """Read the tables of collectives into one picture per rank."""
    chosen, families = _dumps(run)
    if not chosen:
        return Recorded(frozenset(), {}, {}, {}, families, chosen, _no_rows(), _timed_out(run))
    rows = _rows(run.scan("collectives"), chosen)
    everyone = tuple(sorted(world(run)))

    @cache
    def key_of(group: str, ranks: str) -> Key:
        return group, listed(ranks) or everyone

    enqueued: dict[Key, dict[int, int]] = {}
    completed: dict[Key, dict[int, int]] = {}
    far = rows.filter(~pl.col("p2p")).group_by("group", "ranks", "rank", maintain_order=True).agg(
        pl.col("seq").max(), done=pl.col("seq").filter(~pl.col("pending")).max()
    )  # fmt: skip
    for group, ranks, rank, seq, done in far.iter_rows():
        key = key_of(group, ranks)
        enqueued.setdefault(key, {})[rank] = seq
        if done is not None:
            completed.setdefault(key, {})[rank] = done
    _add_states(run, chosen, key_of, enqueued, completed)
    pending = _pending(rows, key_of)
    return Recorded(frozenset(chosen), enqueued, completed, pending, families, chosen, rows, _timed_out(run))


def _rows(collectives: pl.LazyFrame, chosen: Mapping[int, str]) -> pl.DataFrame:
    """The entries of the chosen dumps, in the order of their sources."""
    where = pl.DataFrame(
        {"rank": list(chosen), "source": list(chosen.values())}, schema={"rank": pl.Int32, "source": pl.String}
    )
    return (
        collectives.with_row_index("record")
        .join(where.lazy(), on=["rank", "source"], how="semi")
        .filter(pl.col("seq").is_not_null() & pl.col("group").is_not_null())
        .with_columns(
            pending=pending_expr(),
            p2p=pl.col("attrs").str.contains('"p2p":\\s*"?true', literal=False).fill_null(value=False),
            ranks=pl.col("ranks").fill_null("").cast(pl.Categorical),  # grouped by its number: a text of all ranks
        )
        .sort("source", "record")
        .collect()
    )


@cache
def _no_rows() -> pl.DataFrame:
    return _rows(pl.LazyFrame(schema=dict(TABLES["collectives"])), {})


def pending_expr() -> pl.Expr:
    """Whether a row of `collectives` is work that did not end."""
    return pl.col("state").is_in(["scheduled", "started", "timed_out"])


#: The code of a dump of the flight recorder, read as events.
_DUMP = "fr-dump"


def _timed_out(run: Run) -> dict[int, frozenset[int]]:
    if "collectives" not in run.frames:
        return {}
    rows = (
        run.scan("collectives")
        .filter(pl.col("group").is_null() & pl.col("rank").is_not_null() & (pl.col("state") == "timed_out"))
        .group_by("rank")
        .agg(pl.col("seq").drop_nulls().unique())
        .collect()
    )
    return {rank: frozenset(seqs) for rank, seqs in rows.iter_rows()}


@derived
def timed_out_in(run: Run) -> Mapping[int, Mapping[int, str]]:
    """Operations in which watchdogs found ranks waiting: by number, the operation of each rank; no group is named."""
    found: dict[int, dict[int, str]] = {}
    for seq, rank, op, _ in _late(run):
        found.setdefault(seq, {})[rank] = op
    return found


def sizes_in(run: Run, seq: int) -> dict[int, str]:
    """The sizes of a numbered operation by the watchdogs; empty for a rank on which they may differ."""
    return {
        rank: "" if stands_for("operation_of_unequal_shapes", op) else sizes or ""
        for number, rank, op, sizes in _late(run)
        if number == seq
    }


def _late(run: Run) -> Iterator[tuple[int, int, str, str | None]]:
    """The number, the rank, the operation and its sizes of what watchdogs report without a group.

    Not of a send or a receive: these differ by design.
    """
    if "collectives" not in run.frames:
        return iter(())
    return (
        run.scan("collectives")
        .filter(pl.col("group").is_null() & (pl.col("state") == "timed_out"))
        .select("seq", "rank", "op", "in_sizes")
        .drop_nulls(["seq", "rank", "op"])
        .filter(~pl.col("op").str.contains(words_for("point_to_point")))
        .unique(["seq", "rank"], keep="first", maintain_order=True)
        .sort("seq", "rank")
        .collect()
        .iter_rows()
    )


def _dumps(run: Run) -> tuple[dict[int, str], dict[str, frozenset[int]]]:
    """The dump to believe of each rank, and which ranks left a dump of the same kind (a path but for its numbers)."""
    if "collectives" not in run.frames and _DUMP not in codes(run):
        return {}, {}
    held = (
        run.scan("collectives")
        .filter(pl.col("rank").is_not_null())
        .group_by("source", "rank")
        .agg(pending=pending_expr().sum(), stacks=pl.col("stack").is_not_null().sum())
    )
    told = run.scan("events").filter((pl.col("code") == _DUMP) & pl.col("rank").is_not_null())
    dumps = pl.concat([held, told.select("source", "rank")], how="diagonal").with_columns(
        pl.col("pending", "stacks").fill_null(0)
    )
    rows = dumps.sort(["rank", "pending", "stacks", "source"], descending=[False, True, True, False]).collect()
    chosen: dict[int, str] = {}
    families: dict[str, set[int]] = {}
    for source, rank in rows.select("source", "rank").iter_rows():
        chosen.setdefault(rank, source)
        families.setdefault(_DIGITS.sub("#", source), set()).add(rank)
    return chosen, {name: frozenset(ranks) for name, ranks in families.items()}


def _add_states(
    run: Run,
    chosen: Mapping[int, str],
    key_of: Callable[[str, str], Key],
    enqueued: dict[Key, dict[int, int]],
    completed: dict[Key, dict[int, int]],
) -> None:
    """Add the status of the groups of a dump: a ring that wrapped has lost the entries themselves."""
    rows = events_of(run, ["fr-group"]).select("source", "rank", "attrs")
    for source, rank, attrs in rows.iter_rows():
        if rank is None or chosen.get(rank) != source:
            continue
        said = attributes(attrs)
        key = key_of(said.get("group", ""), said.get("ranks", ""))
        sent, done = _whole(said.get("last_enqueued")), _whole(said.get("last_completed"))
        if sent is None:
            continue
        ours = enqueued.setdefault(key, {})
        ours[rank] = max(sent, ours.get(rank, -1))
        if done is not None and done <= sent:  # a number above it is a known garbage value
            ends = completed.setdefault(key, {})
            ends[rank] = max(done, ends.get(rank, -1))


def _whole(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None


def _pending(rows: pl.DataFrame, key_of: Callable[[str, str], Key]) -> dict[int, tuple[Entry, ...]]:
    kept = rows.filter("pending").group_by("rank", maintain_order=True).head(_KEPT_PER_RANK)
    found: dict[int, list[Entry]] = {}
    for row in kept.iter_rows(named=True):
        found.setdefault(row["rank"], []).append(entry_of(row, key_of(row["group"], row["ranks"])))
    return {rank: tuple(entries) for rank, entries in found.items()}


def entry_of(row: Mapping[str, Any], key: Key) -> Entry:
    """One row of `collectives` as a value."""
    said = attributes(row["attrs"])
    src, dst = _whole(said.get("src")), _whole(said.get("dst"))
    return Entry(
        rank=row["rank"],
        key=key,
        seq=row["seq"],
        op=row["op"] or "an operation",
        sizes=row["in_sizes"] or "",
        dtype=row["dtype"] or "",
        done=not row["pending"],
        source=row["source"],
        record=row["record"],
        site=row["site"] or "",
        peer=None if not row["p2p"] else dst if src == row["rank"] else src,
        p2p_seq=row["p2p_seq"],
        gloo=said.get("op", "").startswith("gloo"),
        begun=row["state"] == "started",
    )
