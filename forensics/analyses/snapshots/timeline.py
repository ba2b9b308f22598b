"""Allocated and reserved bytes after every event of a memory snapshot's recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from forensics.analyses.snapshots._events import changes, release_of
from forensics.analyses.snapshots._values import Snapshot
from forensics.store.run import Run


class Timeline(Struct, frozen=True):
    """One entry an event: its number in the file, seconds after the first (None without a clock), bytes after it.

    `ooms` are places in the arrays.
    """

    seq: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64] | None
    allocated: npt.NDArray[np.int64]
    reserved: npt.NDArray[np.int64]
    ooms: tuple[int, ...]


def timeline_of(run: Run, snapshot: Snapshot) -> Timeline:
    """Count the bytes along the events, from where the accounts of the snapshot begin."""
    here = (pl.col("source") == snapshot.source) & (pl.col("device").fill_null(0) == snapshot.device)
    events = run.scan("allocs").filter(here).select("seq", "t_ns", "action", "size").sort("seq").collect()
    allocated, reserved = changes(release_of(set(events["action"].unique().cast(pl.String))))
    rows = events.select(
        "seq",
        "t_ns",
        allocated=allocated.fill_null(0).cum_sum() + snapshot.start_allocated_bytes,
        reserved=reserved.fill_null(0).cum_sum() + snapshot.start_reserved_bytes,
        oom=pl.col("action").cast(pl.String) == "oom",
    )
    times = rows["t_ns"]
    clocked = rows.height > 0 and not times.null_count() and times.is_sorted()
    return Timeline(
        rows["seq"].to_numpy(),
        (times - times[0]).to_numpy() / 1e9 if clocked else None,
        rows["allocated"].to_numpy(),
        rows["reserved"].to_numpy(),
        tuple(rows["oom"].arg_true().to_list()),
    )
