"""Time that the training loop waited for its data loader, as `torch.utils.data` marks it in profiler traces."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.intervals import covered, union_of
from forensics.analyses.traces.steps import spans, steps
from forensics.knowledge.vocabulary import words_for
from forensics.store.run import Run, derived

MARK = "enumerate(DataLoader)"


@derived
def loader_rows(run: Run) -> pl.DataFrame:
    """Every call for the next batch: source, rank, seq, name, thread, start_ns, end_ns; sorted by source and start."""
    rows = spans(run, pl.col("name").str.starts_with(MARK) & ~pl.col("category").str.starts_with("gpu"))
    columns = ("source", "rank", "seq", "name", "thread", "start_ns", "dur_ns", "end_ns")
    return rows.select(columns).collect().sort("source", "start_ns", "seq")


@derived
def loader_share(run: Run) -> pl.DataFrame:
    """One row a source with such calls.

    Columns: source, rank, calls, wait_ns (their union), in_steps_ns, steps_ns, steps, share (of the steps' time; null
    without steps), in_process (`num_workers=0`: the batch is made by the training process itself).
    """
    rows, marks = loader_rows(run), steps(run)
    shares = [_share(own, marks.filter(pl.col("source") == own["source"][0])) for own in rows.partition_by("source")]
    return pl.DataFrame(shares, schema=_SHARE)


_SHARE = {
    "source": pl.String,
    "rank": pl.Int32,
    "calls": pl.Int64,
    "wait_ns": pl.Int64,
    "in_steps_ns": pl.Int64,
    "steps_ns": pl.Int64,
    "steps": pl.Int64,
    "share": pl.Float64,
    "in_process": pl.Boolean,
}


def _share(own: pl.DataFrame, marks: pl.DataFrame) -> dict[str, object]:
    waits, whole = union_of(own), union_of(marks)
    inside = int(covered(waits, whole.start, whole.end).sum())
    steps_ns = int((whole.end - whole.start).sum())
    return {
        "source": own["source"][0],
        "rank": own["rank"].max(),
        "calls": own.height,
        "wait_ns": int((waits.end - waits.start).sum()),
        "in_steps_ns": inside,
        "steps_ns": steps_ns,
        "steps": marks.height,
        "share": inside / steps_ns if steps_ns else None,
        "in_process": bool(own["name"].str.contains(words_for("loader_in_process")).any()),
    }
