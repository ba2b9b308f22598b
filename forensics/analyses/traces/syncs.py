"""Host calls that wait for the device, and where in the program they were made.

A call blocks when it is a synchronisation, a synchronous copy or an allocation from the driver. What the profiler
itself does when its window begins and ends (`cudaDeviceSynchronize` outside of the steps) is set aside.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.analyses.traces.gpu import gpu_rows, host_calls
from forensics.analyses.traces.intervals import Ints
from forensics.analyses.traces.steps import spans, step_at, steps
from forensics.knowledge.libraries import library_files
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived


@derived
def sync_calls(run: Run) -> pl.DataFrame:
    """Every blocking call of the program, sorted by source and start.

    Columns: source, rank, seq, name, thread, start_ns, end_ns, dur_ns, waits (false: memory of the driver), step, copy
    (the copy that it waits for, by name, or null), op (the innermost operator around it) and frame (the innermost
    Python function around it, of the program rather than of torch where there is one), null where the trace has none.
    """
    found = (
        host_calls(run)
        .filter(pl.col("name").str.contains(words_for("blocking_call")))
        .select("source", "rank", "seq", "name", "thread", "start_ns", "dur_ns", "end_ns")
        .with_columns(waits=pl.col("name").str.contains(words_for("waiting_call")))
        .collect()
        .sort("source", "start_ns", "seq")
    )
    found = found.with_columns(step_at(steps(run), found["source"], found["start_ns"]))
    found = _without_profiler(found, host_calls(run), steps(run))
    return _copies(_sites(run, found), gpu_rows(run))


def _without_profiler(found: pl.DataFrame, calls: pl.LazyFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Leave out device-wide waits outside of the steps; without steps, those before and after every launch."""
    launched = calls.filter(pl.col("correlation") > 0, ~pl.col("name").str.contains("Synchronize"))
    around = launched.group_by("source").agg(first=pl.col("start_ns").min(), last=pl.col("start_ns").max())
    bounds = found.join(around.collect(), on="source", how="left", maintain_order="left")
    stepped = bounds["source"].is_in(marks["source"].unique().to_list())
    outside = pl.when(stepped).then(pl.col("step").is_null())
    outside = outside.otherwise(~pl.col("start_ns").is_between("first", "last").fill_null(value=False))
    return bounds.filter(~(pl.col("name").str.contains(words_for("device_synchronize")) & outside)).drop(
        "first", "last"
    )


def _sites(run: Run, found: pl.DataFrame) -> pl.DataFrame:
    asked = found.select("source", "thread", at_ns="start_ns")
    ops = _of_threads(run, asked, pl.col("category") == "cpu_op")
    return found.with_columns(_named(ops, asked, "op"), frames_at(run, asked))


def frames_at(run: Run, asked: pl.DataFrame) -> pl.Series:
    """Name the innermost Python function around each instant (`source`, `thread`, `at_ns`), null where none is known.

    A function of the program is preferred to one of a library.
    """
    in_a_file = ~pl.col("name").str.contains(words_for("frame_without_file"))
    frames = _of_threads(run, asked, (pl.col("category") == "python_function") & in_a_file)
    own = frames.filter(~pl.col("name").str.extract(r"^([^:(]+)").str.contains(library_files()))
    return pl.select(frame=pl.coalesce(_named(own, asked, "own"), _named(frames, asked, "library")))["frame"]


def _of_threads(run: Run, asked: pl.DataFrame, where: pl.Expr) -> pl.DataFrame:
    threads = pl.col("thread").is_in(asked["thread"].unique().drop_nulls().to_list())
    return spans(run, threads & where).select("source", "thread", "name", "start_ns", "end_ns").collect()


def _named(rows: pl.DataFrame, asked: pl.DataFrame, column: str) -> pl.Series:
    index = pl.Series("index", innermost(rows, asked)).replace(-1, None)
    return (
        rows["name"].gather(index).alias(column) if rows.height else pl.Series(column, [None] * asked.height, pl.String)
    )


def _copies(found: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Name the copy that the same thread asked for last before it waited."""
    copies = work.filter((pl.col("category") == "gpu_memcpy") & pl.col("launch_ns").is_not_null()).select(
        "source", "thread", "launch_ns", copy="name", ends="end_ns"
    )
    if copies.is_empty():
        return found.with_columns(copy=pl.lit(None, pl.String))
    joined = found.sort("start_ns").join_asof(
        copies.sort("launch_ns"),
        left_on="start_ns",
        right_on="launch_ns",
        by=["source", "thread"],
        check_sortedness=False,
    )
    # the wait is for the copy when the copy was still under way as the wait began
    late = pl.col("ends") >= pl.col("start_ns")
    return (
        joined.with_columns(copy=pl.when(late).then(pl.col("copy")))
        .drop("ends", "launch_ns")
        .sort("source", "start_ns", "seq")
    )


# Which row of a host thread encloses an instant most closely, without walking the events.
#
# Rows of one thread nest. The depth of an instant is the number of rows begun less the number ended; the row that
# encloses it most closely is the last one begun at that depth.


def innermost(rows: pl.DataFrame, at: pl.DataFrame) -> Ints:
    """Index into `rows` of the row that most closely encloses each instant, or -1.

    Args:
        rows: columns source, thread, start_ns, end_ns.
        at: columns source, thread, at_ns; an instant at a row's start is within it.
    """
    out = np.full(at.height, -1, np.int64)
    keys = ["source", "thread"]
    threads = rows.with_row_index("row").partition_by(keys, as_dict=True)
    for key, asked in at.with_row_index("ask").partition_by(keys, as_dict=True).items():
        if (own := threads.get(key)) is not None:
            found = _of_thread(own["start_ns"].to_numpy(), own["end_ns"].to_numpy(), asked["at_ns"].to_numpy())
            index = own["row"].to_numpy().astype(np.int64)
            out[asked["ask"].to_numpy()] = np.where(found >= 0, index[found], -1)
    return out


def _of_thread(start: Ints, end: Ints, at: Ints) -> Ints:
    order = np.lexsort((-end, start))
    begun, ended = start[order], np.sort(end)
    # rank of each row by start stands for its time: equal starts then nest as they are sorted, longest outside
    depth = np.arange(1, len(order) + 1) - np.searchsorted(ended, begun, side="right")
    last = np.searchsorted(begun, at, side="right") - 1
    wanted = last + 1 - np.searchsorted(ended, at, side="right")
    found = _last_at_depth(depth, wanted, last)
    inside = (found >= 0) & (end[order][np.maximum(found, 0)] > at)
    return np.where(inside, order[np.maximum(found, 0)], -1)


def _last_at_depth(depth: npt.NDArray[np.int64], wanted: Ints, last: Ints) -> Ints:
    """Position of the last row at or before `last` whose depth is `wanted`, or -1."""
    size = len(depth) + 1
    by_depth = np.lexsort((np.arange(len(depth)), depth))
    keys = depth[by_depth] * size + by_depth
    index = np.searchsorted(keys, wanted * size + last, side="right") - 1
    found = by_depth[np.maximum(index, 0)]
    good = (index >= 0) & (wanted > 0) & (last >= 0)
    return np.where(good & (depth[found] == wanted), found, -1)
