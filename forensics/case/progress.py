"""The ledger of a run: every counter `N of M` that it prints, what each counts, and the plans of its settings.

A counter counts training when the words before it say so, or, where it has none, when training records are between its
first and its last frame: an evaluation, a data set or a download draws the same bar, and logs no loss meanwhile. One
whose words tell nothing counts training when most of its frames are such records themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.case.series import metric_records
from forensics.case.settings import keyed, keys_with
from forensics.case.steps import WRITER, at, parts
from forensics.dialects.counters import kind_of, plan_keys
from forensics.patterns import lazily
from forensics.store.run import Run, derived

#: A plan is reached by the last record before it where so small a share of it is left: the loop prints no later step.
#: A run that is killed at any step alike dies in that share of its runs between its last record and its end.
CLOSE = 0.05
#: A bar is drawn full as its last step is done, and once more as it is closed.
_DRAWN_FULL = 2
_NUMBERED_EPOCH = lazily(r"(?i)\bep(?:och)?s?\W{0,3}(\d+)(?:\s*(?:/|of)\s*(\d+))?")
#: What tells the two streams of one process apart in the names of their files.
_STREAM = lazily(r"(?:std)?(?:err|out)(?:or|put)?", re.IGNORECASE)
#: Numbers of records, rising.
Places = NDArray[np.int64]
#: A counter's frames: those of one reader under one name and plan, in order.
_COUNTER = (*WRITER, "name", "unit", "plan", "dialect")


class Counter(Struct, frozen=True):
    """One counter of one source: `done` of `plan` at its last frame, which is record `seq`.

    `what`: train, eval, data, download, sampling, or empty where nothing tells; `unit`: step (of the run), batch (of an
    epoch) or epoch. `first` is the least number seen, `every` the usual distance of two frames, and `passes` how often
    it ran from the beginning.
    """

    source: str
    attempt: int
    rank: int | None
    what: str
    unit: str
    label: str
    done: int | None
    plan: int
    first: int | None = None
    every: int = 0
    passes: int = 1
    is_bar: bool = False
    seq: int = 0

    @property
    def last(self) -> int:
        """The number that it shows when all is done: a loop from 0 prints one less than its plan, a bar does not."""
        from_zero = self.first == 0 and not self.is_bar and self.done != self.plan
        return self.plan - from_zero

    @property
    def is_reached(self) -> bool:
        """Whether no later frame is to come."""
        if self.done is None:
            return False
        return self.done >= self.last or is_close(self.done, self.last, 0 if self.is_bar else self.every)


class Plan(Struct, frozen=True):
    """How far the settings say that training goes: `unit` is step or epoch."""

    unit: str
    count: int


class Ledger(Struct, frozen=True):
    """All counters, training counters by their ends, and the plans of the settings."""

    counters: tuple[Counter, ...] = ()
    plans: tuple[Plan, ...] = ()

    def of(self, what: str, unit: str) -> tuple[Counter, ...]:
        """Give the counters of one kind and unit that belong to the last attempt of their source."""
        last: dict[str, int] = {}
        for one in self.counters:
            last[one.source] = max(one.attempt, last.get(one.source, 0))
        return tuple(c for c in self.counters if (c.what, c.unit) == (what, unit) and c.attempt == last[c.source])

    def planned(self, unit: str) -> int | None:
        """Give how far training is to go in a unit (step or epoch): by the lines of the program, else by its settings.

        The largest of several: a run that was resumed goes further. None where nothing tells.
        """
        lines = (counter.plan for counter in self.of("train", unit) if counter.done is None)
        settings = (plan.count for plan in self.plans if plan.unit == unit)
        return max(lines, default=None) or max(settings, default=None)


def is_close(done: int, last: int, every: int) -> bool:
    """Whether the next record, `every` further on, would be beyond the end, and little is left until there."""
    return done + every > last and last - done <= CLOSE * last


def same_process(one: str, other: str) -> bool:
    """Tell whether two files are the two streams of one process: `job-7.err` and `job-7.out`."""
    (here, name), (there, like) = ((path.rpartition("/")[0], path.rpartition("/")[2]) for path in (one, other))
    return here == there and _STREAM.sub("", name) == _STREAM.sub("", like)


@derived
def ledger(run: Run) -> Ledger:
    """Collect the counters and plans of a run."""
    frames = _frames(run)
    plans = tuple(_plans(run))
    return Ledger(tuple(_counters(run, frames, plans)) if frames.height else (), plans)


def _frames(run: Run) -> pl.DataFrame:
    """Rows of the table with `attempt` 0 where none is told; of two dialects' frames of one place, the fuller."""
    every = run.collect("progress").with_columns(pl.col("attempt").fill_null(0), pl.col("label").fill_null(""))
    named = every.sort(pl.col("label") == "", pl.col("elapsed_s").is_null(), maintain_order=True)
    same = ("source", "seq", pl.col("unit") == "epoch", "done", "plan")
    kept = named.filter(pl.int_range(pl.len()).over(*same) == 0)
    return kept.sort("source", "seq", maintain_order=True).with_columns(
        name=pl.col("label").str.replace_all(r"\d+", "#")
    )


def _counters(run: Run, frames: pl.DataFrame, plans: Sequence[Plan]) -> Iterator[Counter]:
    records = _training_records(run)
    planned = frozenset(plan.count for plan in plans if plan.unit == "step")
    unnumbered = _unnumbered(run)
    for _, part in frames.group_by(_COUNTER, maintain_order=True):
        seen = part.filter(pl.col("done").is_not_null())
        row = (seen if seen.height else part).row(-1, named=True)
        steps = seen["done"].diff().drop_nulls()
        is_bar = row["per"] != "" or row["elapsed_s"] is not None
        what, unit = _what(row, part, frames, records), row["unit"]
        if not what and unit == "step" and row["plan"] in planned:
            what = "train"  # a bar in a file of its own, of as many steps as the settings plan
        beside = any(same_process(row["source"], other) for other in unnumbered)
        if not what and unit == "step" and beside and _holds_all(part, frames):
            what = "train"  # a bar on the other stream of a process whose records number no step
        epoch = _NUMBERED_EPOCH.search(row["label"])
        if what == "train" and unit == "step" and epoch is not None:
            unit = "batch"
            yield from _epoch_of_label(row, seen, epoch)
        speaker = row["source"], row["attempt"], row["rank"]
        yield Counter(
            *speaker, what, unit, row["label"], row["done"], row["plan"],
            first=_whole(seen["done"].min()),
            every=int(steps.filter(steps > 0).median() or 0),  # type: ignore[arg-type] # a number: the column is Int64
            passes=int((steps < 0).sum()) + 1,
            is_bar=is_bar,
            seq=row["seq"],
        )  # fmt: skip


def _holds_all(part: pl.DataFrame, frames: pl.DataFrame) -> bool:
    """Whether a bar is drawn before and after all others of its file: evaluations come and go within it."""
    outside = (pl.col("seq") < int(part["seq"][0])) | (pl.col("seq") > int(part["seq"][-1]))
    return frames.filter((pl.col("source") == part["source"][0]) & outside).is_empty()


def _epoch_of_label(row: Mapping[str, Any], seen: pl.DataFrame, epoch: re.Match[str]) -> Iterator[Counter]:
    """The epochs that the words before a bar of batches count: `Epoch 3/10: 45%|…`."""
    if epoch[2] is None:
        return
    numbers = seen["label"].str.extract(_NUMBERED_EPOCH.pattern, 1).cast(pl.Int64, strict=False)
    speaker, counted = (row["source"], row["attempt"], row["rank"]), (int(epoch[1]), int(epoch[2]))
    seen_first, seq = _whole(numbers.min()), row["seq"] or 0
    yield Counter(*speaker, "train", "epoch", row["label"], *counted, first=seen_first, seq=seq)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _fills_once(row: Mapping[str, Any], frames: pl.DataFrame) -> bool:
    """Whether no bar of as many steps in that file begins anew or is full again and again, whatever its words."""
    alike = (pl.col("source") == row["source"]) & (pl.col("unit") == row["unit"]) & (pl.col("plan") == row["plan"])
    done = frames.filter(alike)["done"]
    return not (done.diff() < 0).any() and int((done == row["plan"]).sum()) <= _DRAWN_FULL


def _what(row: Mapping[str, Any], part: pl.DataFrame, frames: pl.DataFrame, records: Mapping[str, Places]) -> str:
    named = kind_of(row["label"], row["per"]) if row["label"] or row["per"] else ""
    if named:
        return named
    if part["done"].null_count() == part.height and not row["label"]:  # a plan: `Total optimization steps = 3000`
        return "train"
    places = records.get(row["source"])
    if places is None:
        return ""
    if row["label"]:  # words that name nothing known, or numbers: `loss=0.41: 30%|…`; of each epoch where it fills anew
        return (
            "train"
            if _fills_once(row, frames) and 2 * np.isin(part["seq"].to_numpy(), places).sum() > part.height
            else ""
        )
    first, behind = np.searchsorted(places, [part["seq"][0], part["seq"][-1] + 1])
    return "train" if behind > first else ""


def _training_records(run: Run) -> dict[str, Places]:
    """Places of the records of a loss or another training quantity, by source, in order."""
    rows = metric_records(run).filter("trains").select("source", "seq").drop_nulls("seq").collect()
    return {str(part["source"][0]): np.sort(part["seq"].to_numpy()) for part in parts(rows, ("source",)) if part.height}


def _unnumbered(run: Run) -> Sequence[str]:
    """Sources whose training records have no step, as a stream whose steps are drawn by a bar in the other one."""
    told = metric_records(run).filter("trains").group_by("source").agg(at().is_not_null().any().alias("numbered"))
    return told.filter(~pl.col("numbered")).collect()["source"].sort().to_list()


def _plans(run: Run) -> Iterator[Plan]:
    """Counts above 0 that settings name; -1, with which a trainer says that epochs decide, is no plan."""
    steps, epochs = plan_keys("step"), plan_keys("epoch")
    in_epochs = pl.col("key").is_in(keys_with(run, epochs))
    rows = (
        keyed(run, steps, epochs)
        .with_columns(
            count=pl.col("value").str.strip_chars('"').cast(pl.Float64, strict=False),
            unit=pl.when(in_epochs).then(pl.lit("epoch")).otherwise(pl.lit("step")),
        )
        .filter((pl.col("count") > 0) & (pl.col("count") == pl.col("count").round()) & (pl.col("count") < 1e15))
        .sort("source", "line", "key")
        .select("unit", "count")
        .collect()
    )
    yield from (Plan(unit, int(count)) for unit, count in rows.iter_rows())
