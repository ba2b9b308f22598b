"""The ranks that the job had, and the nodes that they ran on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import polars as pl

from forensics.case.errors.coded import codes, events_telling
from forensics.case.errors.exits import exits
from forensics.case.errors.named import ranks_named
from forensics.case.rank_spans import MOST_RANKS, listed
from forensics.case.series import keys_of, metric_rows
from forensics.case.steps import only
from forensics.knowledge.errors import telling
from forensics.knowledge.settings import setting
from forensics.patterns import lazily
from forensics.store.run import Run, derived

_CLIENTS = lazily(r"\b\d+/(\d{1,6}) clients joined|\bMEMBER: \d+/(\d{1,6})\b")
#: The launcher's folder of one agent (one node) holds a folder for each worker.
_FOLDER = lazily(r"^(?P<node>.*?attempt_\d+)/\d+/")
#: An event that speaks of a failure: the size in a message of who waits for the others says nothing of who started.
_COMPLAINT = r'"shape":\s*"[a-z]'
#: The setting whose name a metric may have, and what stands before the last part of the name of one.
_COUNT, _OUTER = "device_count", lazily(r".*[./]")
_SIZE = lazily(r"world[_ ]?size|n_?ranks|num_processes", re.IGNORECASE)


@derived
def world(run: Run) -> frozenset[int]:
    """List every rank of the job.

    Those that left something, be it an empty file, those of whose end a launcher tells, and those that a group or a
    message counts in.
    """
    empty = run.scan("sources").filter((pl.col("size") == 0) & pl.col("rank").is_not_null()).select("rank").collect()
    found: set[int] = {*empty["rank"].to_list(), *exits(run).by_rank}
    for table in ("events", "metrics", "collectives", "stack_frames"):
        if table not in run.frames:
            continue
        table_rows = keys_of(run).lazy() if table == "metrics" else run.scan(table)
        rows = table_rows.select("rank").filter(pl.col("rank").is_not_null()).unique().collect()
        found.update(rows["rank"].to_list())
    found.update(
        ranks_named(run)[name] for name in map(str, _each(run, "stack_frames", "pid")) if name in ranks_named(run)
    )
    for text in _each(run, "collectives", "ranks"):
        found.update(listed(text))
    found.update(range(_size(run)))
    stated = _stated(run)
    # rank 0 often prints without a rank, and of more not all are heard of
    if (found and len(found) == stated - 1) or ranks_in_group(run):
        found.update(range(stated))
    return frozenset(rank for rank in found if 0 <= rank < MOST_RANKS)


def _each(run: Run, table: str, column: str) -> pl.Series:
    """Each value of a column once, where something wrote the table."""
    rows = run.scan(table).select(pl.col(column).drop_nulls().unique()) if table in run.frames else None
    return pl.Series() if rows is None else rows.collect().to_series()


@derived
def ranks_in_group(run: Run) -> Mapping[tuple[str, int], int]:
    """The rank in its group of each line that says no other, by source and line; empty where groups may be parts.

    Old versions of PyTorch print no other rank. Groups that share out a job have half of its ranks at most, so one in
    which more of them are heard of is all of it.
    """
    told = pl.col("rank").is_null() & pl.col("attrs").str.contains('"group_rank"', literal=True)
    rows = run.scan("events").filter(told, pl.col("line").is_not_null()).select("source", "line", "attrs").collect()
    found = {(source, line): int(json.loads(attrs)["group_rank"]) for source, line, attrs in rows.iter_rows()}
    size = max(_size(run), _stated(run)) if found else 0
    whole = 2 * len(set(found.values())) > size > max(found.values(), default=0)
    return found if whole else {}


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


def _stated(run: Run) -> int:
    """Size of the job as the last line that counts its devices states it, 0 where none does."""
    if codes(run).isdisjoint(telling("devices")):
        return 0
    said = pl.col("code").is_in(telling("devices")) & pl.col("text").str.contains(f"(?i){_SIZE.pattern}")
    complaints = run.scan("events").filter(pl.col("attrs").str.contains(_COMPLAINT)).select("source", "line").unique()
    stated = run.scan("events").filter(said).join(complaints, on=["source", "line"], how="anti")
    last = stated.sort("source", "seq").select("attrs").tail(1).collect()
    return max((int(json.loads(attrs)["devices"]) for (attrs,) in last.iter_rows()), default=0)


def nodes(run: Run) -> dict[int, str]:
    """Give the launcher's folder (one for each node and job) of each rank that has one; the last one, of several."""
    rows = run.scan("sources").filter(pl.col("rank").is_not_null()).select("source", "rank").sort("source").collect()
    return {rank: hit["node"] for source, rank in rows.iter_rows() if (hit := _FOLDER.match(source)) is not None}


@derived
def devices_told(run: Run) -> tuple[tuple[str, int, int], ...]:
    """Source, line and number of devices of each line or record that counts the run's devices, in order."""
    counts = only(events_telling(run, "devices", order=("source", "line")), "source", "line", "attrs").drop_nulls(
        "line"
    )
    lines = [(source, line, int(json.loads(attrs)["devices"])) for source, line, attrs in counts.iter_rows()]
    return tuple(sorted((*lines, *_counted(run))))


def _counted(run: Run) -> Iterator[tuple[str, int, int]]:
    """The same of a metric that has the name of the setting."""
    keys = setting(_COUNT).keys
    names = [n for n in keys_of(run)["raw_name"].unique() if re.fullmatch(keys, _OUTER.sub("", n))]
    if names:
        rows = metric_rows(run, pl.col("raw_name").is_in(names)).select(
            "source", "line", pl.col("value").cast(pl.Int64, strict=False)
        )
        yield from rows.drop_nulls().collect().iter_rows()
