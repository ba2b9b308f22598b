"""Gaps in which no stream of a device had work, each with the host's work instead of a launch.

The cause is read from the work that ends the gap. Launched before the gap began, it waited on the device: at most
`KERNEL_WAIT_NS` is the usual latency between kernels, longer next to a collective is communication, else unknown.
Launched late, its thread was busy until then: waiting for the data loader or for a collective for at least half of that
time, at work of its own, returning from a blocking call, or anything else (`host wait`). Work of its own gives the
device nothing and waits for nothing of it: `OWN_NS` or longer without such a call of the driver, and at least half of
the time. A device has no queue of that length: it would run dry with or without the blocking call before it. Operators
do not count: one that launches nothing works on the host, and a trace read for its device's time has none.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.traces.gpu import COMMUNICATION, gpu_rows, host_calls
from forensics.analyses.traces.intervals import Ints, Union, covered, gaps, union_of
from forensics.analyses.traces.loader import loader_rows
from forensics.analyses.traces.steps import spans
from forensics.analyses.traces.syncs import sync_calls
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived

LOADER, SYNC, COMM_WAIT = "data loader", "sync call", "communication wait"
OWN, HOST, KERNEL, UNKNOWN = "own work of the host", "host wait", "kernel wait", "unknown"
#: Gaps up to this long after a timely launch are latency between kernels (the default of HTA's idle-time breakdown).
KERNEL_WAIT_NS = 30_000
#: Python between two operators takes 0.01 to 0.5 ms; the launches that a device may have queued run for a few.
OWN_NS = 5_000_000


@derived
def idle_gaps(run: Run) -> pl.DataFrame:
    """Every gap, sorted by source and start.

    Columns: source, rank, start_ns, end_ns, dur_ns, cause, seq and name (of the work that ends it), thread, launch_ns
    and step of its launch.
    """
    work = gpu_rows(run).select(*_OF_WORK, "start_ns", "end_ns", "dur_ns")
    parts = [_of_source(run, own) for own in work.partition_by("source", maintain_order=True)]
    return pl.concat(parts) if parts else pl.DataFrame(schema=_SCHEMA)


def idle_causes(run: Run) -> pl.DataFrame:
    """One row a source and cause: source, rank, cause, gaps, time_ns, longest_ns; the longest in sum first."""
    return (
        idle_gaps(run)
        .group_by("source", "cause", maintain_order=True)
        .agg(pl.col("rank").max(), gaps=pl.len(), time_ns=pl.col("dur_ns").sum(), longest_ns=pl.col("dur_ns").max())
        .sort(["source", "time_ns", "cause"], descending=[False, True, False])
    )


_SCHEMA = {
    "source": pl.String,
    "rank": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "cause": pl.String,
    "seq": pl.Int64,
    "name": pl.String,
    "thread": pl.String,
    "launch_ns": pl.Int64,
    "step": pl.Int64,
}


_OF_WORK = ("source", "rank", "seq", "name", "kind", "thread", "launch_ns", "step")


def _of_source(run: Run, own: pl.DataFrame) -> pl.DataFrame:
    idle = gaps(union_of(own))
    # empty work may lie inside of a gap and ends none
    solid = np.flatnonzero(own["dur_ns"].to_numpy() > 0)
    ending = own.select(_OF_WORK)[solid[np.searchsorted(own["start_ns"].to_numpy()[solid], idle.end)]]
    ends = own["end_ns"].to_numpy()[solid]
    by_end = np.argsort(ends, kind="stable")
    ended = own["kind"][solid[by_end[np.searchsorted(ends[by_end], idle.start)]]]
    here, source = pl.col("source") == own["source"][0], own["source"][0]
    frame = ending.with_columns(
        start_ns=pl.Series(idle.start),
        end_ns=pl.Series(idle.end),
        dur_ns=pl.Series(idle.end - idle.start),
        beside=(ending["kind"] == COMMUNICATION) | (ended == COMMUNICATION),
        waited=(pl.col("launch_ns") - pl.lit(pl.Series(idle.start))).clip(lower_bound=0),
    )
    frame = frame.with_columns(
        pl.Series(name, covered(union_of(rows), idle.start, _until(frame, idle))) * 2 >= frame["waited"].fill_null(0)
        for name, rows in (
            ("loads", loader_rows(run).filter(here)),
            ("talks", _collectives(run, source)),
            ("blocked", sync_calls(run).filter(here)),
        )
    )
    frame = frame.with_columns(_after_sync(run, source, frame), _at_own_work(run, source, frame, idle))
    return frame.with_columns(_cause()).select(*_SCHEMA).cast(pl.Schema(_SCHEMA))


def _until(frame: pl.DataFrame, idle: Union) -> Ints:
    """The time at which the host was free again: at the late launch, or at the gap's end."""
    launch = frame["launch_ns"].fill_null(0).to_numpy()
    return np.where(launch > idle.start, np.minimum(launch, idle.end), idle.end)


def _collectives(run: Run, source: str) -> pl.DataFrame:
    on_host = (pl.col("source") == source) & pl.col("category").is_in(["cpu_op", "user_annotation"])
    named = pl.col("name").str.contains(words_for("collective_event"))
    return spans(run, on_host & named).select("start_ns", "end_ns").collect()


def _after_sync(run: Run, source: str, frame: pl.DataFrame) -> pl.Series:
    """Whether the last blocking call of the launching thread before the launch was under way as the gap began."""
    calls = sync_calls(run).filter(pl.col("source") == source).sort("start_ns")
    asked = frame.select("thread", "start_ns", "launch_ns").with_row_index("row")
    found = asked.sort("launch_ns").join_asof(
        calls.select("thread", call_ns="start_ns", call_end="end_ns").sort("call_ns"),
        left_on="launch_ns",
        right_on="call_ns",
        by="thread",
        check_sortedness=False,
    )
    drained = (pl.col("call_ns") <= pl.col("start_ns")) & (pl.col("call_end") >= pl.col("start_ns"))
    return found.sort("row").select(drained.fill_null(value=False).alias("drained"))["drained"]


def _at_own_work(run: Run, source: str, frame: pl.DataFrame, idle: Union) -> pl.Series:
    """Whether the host neither gave the device work nor awaited any for most of the time until the late launch."""
    late = frame["waited"].fill_null(0).to_numpy()
    if not (late >= OWN_NS).any():
        return pl.Series("own", np.zeros(len(late), np.bool_))
    calls = host_calls(run).filter(pl.col("source") == source).select("start_ns", "end_ns").collect()
    silent = _until(frame, idle) - idle.start - covered(union_of(calls), idle.start, _until(frame, idle))
    return pl.Series("own", (silent >= OWN_NS) & (silent * 2 >= late))


def _cause() -> pl.Expr:
    short = pl.col("dur_ns") <= KERNEL_WAIT_NS
    late = (pl.col("waited") > 0).fill_null(value=False)
    first_that_holds = (
        (late & pl.col("loads"), LOADER),
        (late & pl.col("talks"), COMM_WAIT),
        (late & pl.col("own"), OWN),
        (late & (pl.col("drained") | pl.col("blocked")), SYNC),
        (late, HOST),
        (short, KERNEL),
        (pl.col("launch_ns").is_not_null() & pl.col("beside"), COMM_WAIT),
    )
    cause = pl.lit(UNKNOWN)
    for holds, name in reversed(first_that_holds):
        cause = pl.when(holds).then(pl.lit(name)).otherwise(cause)
    return cause.alias("cause")
