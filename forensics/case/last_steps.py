"""The last training step that a process had reached before a place of one of its files, over all stores of the run.

Fatal lines are often in another file than the steps: in a job's `.err`, in a launcher's log, in a tracker's exit
record. Asked in this order: the steps of the same file before the place; the last step of the nearest stores (the other
stream of the same process, then the same rank, then printed lines before trackers), by the clock where both have one,
else their last record. Where the file would have printed no step more, a store that ends before the one that was due
says how far it came. A record that gives an epoch alone gets its step from the run's scale of epochs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.epochs import counts_epochs, epoch_scale
from forensics.case.progress import ledger, same_process
from forensics.case.series import of_each_source, record_pieces
from forensics.case.steps import are_sorted, at, in_file, key_of, only, parts, rises
from forensics.store.run import Run, derived

#: Many logs print whole seconds, so that a record of the same second may be printed before a line of a finer clock.
_CLOCK_NS = 1_000_000_000


class Track(Struct, frozen=True):
    """The training records of one source in the order in which they were written: places, steps, times in ns.

    A time is -1 where none was printed. A database fills its pages from their ends, so places need not rise.
    """

    source: str
    rank: int | None
    printed: bool
    at: np.ndarray
    step: np.ndarray
    t_ns: np.ndarray

    def before(self, at: int) -> int | None:
        """Give the last step with a record before a place of this source."""
        rows = np.flatnonzero(self.at < at)
        return int(self.step[rows[-1]]) if len(rows) else None

    def gap(self, at: int) -> int:
        """How many steps lie between the last two that have records, where none follows a place; else 0."""
        earlier = self.step[self.step != self.last]
        return int(self.last - earlier[-1]) if len(earlier) and bool((self.at < at).all()) else 0

    def until(self, t_ns: int) -> int | None:
        """Give the step of the last record until a time; None where all came later or no record has a time."""
        rows = np.flatnonzero((self.t_ns >= 0) & (self.t_ns <= t_ns + _CLOCK_NS))
        return int(self.step[rows[-1]]) if len(rows) else None

    @property
    def last(self) -> int:
        """The step of the last record."""
        return int(self.step[-1])


def last_step(run: Run, source: str, at: int, t_ns: int | None = None, rank: int | None = None) -> int | None:
    """Give the last training step before a place of a source, whose time and rank may be known; None without steps."""
    tracks = _tracks(run)
    others = [track for track in tracks.values() if track.source != source]
    if source in tracks and (own := tracks[source].before(at)) is not None:
        due = own + tracks[source].gap(at)
        return max(
            (track.last for track in others if own < track.last < due and track.rank in (rank, None)), default=own
        )
    nearest = min((_distance(track, source, rank) for track in others), default=None)
    timed: list[int] = []
    if t_ns is not None:
        dated = [(_distance(track, source, rank), step) for track in others if (step := track.until(t_ns)) is not None]
        closest = min((distance for distance, _ in dated), default=None)
        timed = [step for distance, step in dated if distance == closest]
    steps = timed or [track.last for track in others if _distance(track, source, rank) == nearest]
    return max(steps, default=None)


def last_time(run: Run, source: str, at: int) -> int | None:
    """Give the time, in ns, that the last training record before a place of the same source has; None without one."""
    if (track := _tracks(run).get(source)) is None:
        return None
    rows = np.flatnonzero((track.at < at) & (track.t_ns >= 0))
    return int(track.t_ns[rows[-1]]) if len(rows) else None


@derived
def trained_ns(run: Run) -> tuple[int, int] | None:
    """Give the times, in ns, of the first and the last training record; None where none has a time."""
    times = [track.t_ns[track.t_ns >= 0] for track in _tracks(run).values()]
    known = [(int(some.min()), int(some.max())) for some in times if len(some)]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def _distance(track: Track, source: str, rank: int | None) -> tuple[bool, int, bool, bool]:
    """Sort key of how near a store is to a file of the same process; the smaller is the nearer."""
    folders = zip(source.split("/")[:-1], track.source.split("/")[:-1], strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], folders))
    return (not same_process(source, track.source), -shared, rank is not None and track.rank != rank, not track.printed)


def reached(run: Run) -> Iterator[tuple[str, pl.DataFrame]]:
    """Give each step that training printed, by records and by counters, of each source: `rank`, `at`, `step`, `t_ns`.

    The rows of a source are in the order in which they were written; a time is -1 where none was printed. Of many
    records of one step the first and the last are given.
    """
    scale = epoch_scale(run)
    by_epoch = scale.steps_of(pl.col("epoch")) if scale is not None else pl.lit(None, dtype=pl.Int64)
    step = pl.coalesce(at(), by_epoch)
    if epochs := counts_epochs(run):
        converted = pl.lit(None, dtype=pl.Int64) if scale is None else scale.steps_of(step)
        step = pl.when(pl.col("source").is_in(epochs)).then(converted).otherwise(step)
    pieces = (
        rows.filter(step.is_not_null() & pl.col("trains")).select(
            "source",
            "rank",
            "seq",
            at=in_file(),
            step=step,
            t_ns="t_ns",
            printed=pl.col("line").is_not_null(),
        )
        for rows in record_pieces(run, inner=False)
    )
    found = of_each_source(run, *pieces, same=("step", "rank"), rising=("seq", "at", "t_ns"))
    counted = {key_of(part, ["source"])[0]: part.drop("source") for part in parts(_counted(run), ["source"])}
    for source in [*found, *(source for source in counted if source not in found)]:
        rows = found.pop(source, None)
        if rows is not None and not rises(rows["at"]):
            rows = rows.unique(["rank", "at", "step"], maintain_order=True)
        every = [one for one in (rows, counted.get(source)) if one is not None]
        joined = every[0] if len(every) == 1 else pl.concat(every, how="diagonal_relaxed")
        ordered = joined if are_sorted(only(joined, "seq", "at")) else joined.sort("seq", "at", maintain_order=True)
        found_at = ordered["t_ns"]
        times = found_at.fill_null(-1) if found_at.null_count() else found_at
        yield source, only(ordered, "rank", "at", "step", "printed").insert_column(3, times)


@derived
def _tracks(run: Run) -> Mapping[str, Track]:
    return {source: _track(source, rows) for source, rows in reached(run)}


@derived
def _counted(run: Run) -> pl.DataFrame:
    """The frames of counters of training's steps; a traceback may begin on the line on which a bar was drawn."""
    types = {"source": pl.String, "label": pl.String, "plan": pl.Int64}
    own = [(counter.source, counter.label, counter.plan) for counter in ledger(run).of("train", "step")]
    return (
        run.scan("progress")
        .filter((pl.col("unit") == "step") & pl.col("done").is_not_null())
        .with_columns(pl.col("label").fill_null(""))
        .join(pl.LazyFrame(own, schema=types, orient="row").unique(), [*types], "semi")
        .select(
            "source",
            "rank",
            "seq",
            at=in_file() - 1,
            step="done",
            t_ns="t_ns",
            printed=pl.lit(value=True),
        )
        .collect()
    )


def _track(source: str, rows: pl.DataFrame) -> Track:
    ranks: Sequence[int | None] = rows["rank"].unique().to_list()
    return Track(
        source=source,
        rank=ranks[0] if len(ranks) == 1 else None,
        printed=bool(rows["printed"][0]),
        at=rows["at"].to_numpy(),
        step=rows["step"].to_numpy(),
        t_ns=rows["t_ns"].to_numpy(),
    )
