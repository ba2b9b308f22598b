"""How epochs and steps of a run convert, learned from records and counters that give both.

Steps are those that the run itself counts by: optimizer steps, or epochs where its records number nothing else.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.case.joined.stores import counted
from forensics.case.progress import ledger
from forensics.case.series import metric_records
from forensics.case.steps import at
from forensics.store.run import Run, derived

#: A trainer prints two digits of an epoch.
_HALF_DIGIT = 0.005


class EpochScale(Struct, frozen=True):
    """`steps` of the run in one epoch, 1 where its steps are epochs, and the step at which epoch 0 is over."""

    steps: float
    zero: float = 0.0

    def step_of(self, epoch: float) -> int:
        """Give the last step of a whole epoch, or the step of a fraction of one."""
        return round(self.zero + epoch * self.steps)

    def first_of(self, epoch: float) -> int:
        """Give the first step that may be meant by a fraction that is printed with two digits."""
        return self.step_of(max(0.0, epoch - _HALF_DIGIT))

    def steps_of(self, epoch: pl.Expr) -> pl.Expr:
        """Give the same for a column; null for an epoch that is no number, as damage leaves it."""
        return (self.zero + epoch * self.steps).round().cast(pl.Int64, strict=False)


#: The steps of an epoch, as the later half of the records gives them, agree so well: a trainer prints two digits of it.
_AGREE = 0.05


@derived
def epoch_scale(run: Run) -> EpochScale | None:
    """Give the scale of a run; None where nothing tells it."""
    told = _told(run).filter(pl.col("at") >= pl.col("at").max() / 2).sort("epoch")
    if told.height and told["epoch"][-1] % 1:
        each = told["at"] / told["epoch"]
        spread = float(each.max() - each.min())  # type: ignore[operator,arg-type] # numbers
        return EpochScale(each[-1]) if spread <= _AGREE * each[-1] else None
    by_epoch = _by_epoch(run)
    if by_epoch and not _judged(run) - by_epoch:
        return EpochScale(1.0)
    return _of_batches(run) or _line(_ends(run).filter(~pl.col("source").is_in(by_epoch)))


def counts_epochs(run: Run) -> frozenset[str]:
    """List the sources whose records number epochs, in a run whose loss another source numbers by steps.

    Their numbers are no steps: they are compared with those of other sources only by the scale.
    """
    by_epoch = _by_epoch(run)
    return by_epoch if by_epoch and _judged(run) - by_epoch else frozenset()


@derived
def _by_epoch(run: Run) -> frozenset[str]:
    """Sources whose step is the epoch, in each of their epochs."""
    alike = (pl.col("at") == pl.col("epoch")).all().over("source")
    return frozenset(_ends(run).filter(alike)["source"])


def _judged(run: Run) -> frozenset[str]:
    """Sources whose loss is judged: it stands in no other one."""
    return frozenset(counted(run, pl.col("name") == "loss").select("source").unique().collect()["source"])


def _numbered(run: Run) -> pl.LazyFrame:
    return metric_records(run).filter(at().is_not_null() & pl.col("trains"))


@derived
def _told(run: Run) -> pl.DataFrame:
    """Records that give both an epoch and a step."""
    finite = pl.col("epoch").is_finite() & (pl.col("epoch") > 0)
    return _numbered(run).filter(finite).select("source", "epoch", at()).collect()


def _of_batches(run: Run) -> EpochScale | None:
    """The length of an epoch as counters of its batches print it; an epoch that is numbered 0 ends after one."""
    lengths = {counter.plan for counter in ledger(run).of("train", "batch")}
    from_zero = any(counter.first == 0 for counter in ledger(run).of("train", "epoch"))
    return EpochScale(max(lengths), max(lengths) * from_zero) if lengths else None


def _line(ends: pl.DataFrame) -> EpochScale | None:
    slope = ends["slope"].drop_nulls().median()
    if not isinstance(slope, float) or slope <= 0:
        return None
    return EpochScale(slope, float((ends["at"] - slope * ends["epoch"]).median()))  # type: ignore[arg-type] # a number


def _below_heads(run: Run) -> pl.DataFrame:
    """Records with the epoch of the last line above them in their file that begins one (`Epoch 3/10`)."""
    heads = (
        run.scan("progress")
        .filter((pl.col("unit") == "epoch") & pl.col("done").is_not_null())
        .select("source", "seq", epoch=pl.col("done").cast(pl.Float64))
        .sort("seq")
        .collect()
    )
    own = _numbered(run).filter(pl.col("source").is_in(heads["source"].unique().to_list()))
    placed = own.select("source", "seq", at()).sort("seq").collect()
    return placed.join_asof(heads, on="seq", by="source", check_sortedness=False)  # both are sorted


@derived
def _ends(run: Run) -> pl.DataFrame:
    """The last step of each epoch (columns `source`, `epoch`, `at`), and the steps since the epoch before (`slope`)."""
    below = [_below_heads(run).select("source", "epoch", "at")] if "progress" in run.frames else []
    records = pl.concat([_told(run), *below])
    ends = records.filter(pl.col("epoch").is_finite()).group_by("source", "epoch").agg(pl.col("at").max())
    since = (pl.col("at").diff() / pl.col("epoch").diff()).over("source")
    newest = pl.col("epoch") == pl.col("epoch").max().over("source")
    return ends.sort("source", "epoch").with_columns(slope=pl.when(~newest).then(since))
