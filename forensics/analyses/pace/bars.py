"""Progress bars as clocks: the training's bar among several, its steps over the epochs, and the times behind its means.

A bar shows the seconds since it began, and a mean: since it began (tqdm without smoothing, Lightning, Keras), or one
that forgets (tqdm's own, with a weight of 0.3 for the newest). What went into the mean is got back, so that a slow step
shows where it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.analyses.pace.average import undone_quantum
from forensics.case.series import metric_records
from forensics.case.steps import WRITER, at
from forensics.dialects.counters import kind_of
from forensics.io.columns import as_column
from forensics.stats.spread import Floats, quantiles_of
from forensics.store.run import Run, derived

_FEWEST = 12  # draws of one bar below which it is no clock
_WEIGHT = 0.3  # of the newest draw in tqdm's exponential mean, its default
_POSITIVE = 0.9  # share of times that must be positive for a mean to be what it is taken for
#: A mean since the bar began times its count is the time since it began, to a second and a fiftieth, in so many draws.
_OF_ELAPSED, _TICK_S, _ALIKE = 0.02, 1.0, 0.9
#: A bar that begins behind this share of its total goes on from a checkpoint, and may or may not count steps before it.
_RESUMED = 0.1
_AGAIN = 0.9  # the time since a bar began never falls, but where another process draws it on
_TICKS = 40  # a difference of so many seconds is right to 2.5 %
#: So many draws of a crowd are kept at least; with more records than this between two, some were left out.
_FRAMES, _THINNED = 256, 2
_PER = ("it/s", "s/it", "step/s", "s/step", "ms/step", "us/step")
_KERAS = r"^(?:us|ms|s)/step$"  # its first step is not in the mean


def bars(run: Run) -> Iterator[tuple[pl.DataFrame, float]]:
    """Give the training's bar of each source, attempt and rank: its rows with `at`, `lo`, `pace`, and the quantum.

    Rows have the columns of the metrics table, with the step that the bar counts; `pace` is in seconds per step, the
    quantum the unit that it is printed in.
    """
    if "progress" not in run.frames:
        return
    drawn = run.scan("progress").filter(
        pl.col("per").is_in(_PER) & (pl.col("mean_s") > 0) & pl.col("done").is_not_null()
    )
    rows = drawn.with_columns(pl.col("attempt").fill_null(0)).sort("source", "seq").collect()
    kinds = {label: kind_of(label) for label in rows["label"].unique().to_list()}
    training = [label for label, kind in kinds.items() if kind in {"", "train"}]
    for _, part in rows.filter(pl.col("label").is_in(training)).group_by(WRITER, maintain_order=True):
        steps = _numbered(run, part)
        if steps.height >= _FEWEST:
            apart = float(str(part["seq"].diff().median()))
            paced, quantum = _timed(steps, thinned=part.height >= _FRAMES and apart > _THINNED)
            yield _as_metrics(paced), quantum


@derived
def _recorded(run: Run) -> pl.DataFrame:
    """The step of each line that prints a metric of training: columns `source`, `seq`, `own`."""
    numbered = metric_records(run).filter(pl.col("trains") & at().is_not_null() & pl.col("line").is_not_null())
    return numbered.group_by("source", "seq").agg(own=at().max()).collect()


def _numbered(run: Run, part: pl.DataFrame) -> pl.DataFrame:
    """The draws of the total that is drawn most often, with `epoch_` and `at` over the epochs, one for each new mean.

    A draw with the step or the mean of the one before shows other words only. A bar that is drawn once for each epoch,
    when that is over, counts as the record on its line does. Empty where a bar that goes on from a checkpoint has a
    mean since it began, which does not tell what it counts.
    """
    total = int(str(part["plan"].mode().max()))
    own = part.filter(pl.col("plan") == total)
    if (own["done"] == total).all():
        ended = own.join(_recorded(run), ["source", "seq"], "inner", maintain_order="left").rename({"own": "at"})
        ended = ended.with_columns(again_=pl.lit(value=True), epoch_=pl.int_range(pl.len()))
        return ended.filter((pl.col("at") > pl.col("at").cum_max().shift(1)).fill_null(value=True))
    again = (pl.col("done") < pl.col("done").shift(1)).fill_null(value=True)
    own = own.with_columns(epoch_=again.cum_sum() - 1, again_=again)
    own = own.with_columns(at=pl.col("epoch_") * total + pl.col("done"))
    return own.filter(pl.col("again_") | (pl.col("at") > pl.col("at").cum_max().shift(1)))


def _timed(drawn: pl.DataFrame, *, thinned: bool) -> tuple[pl.DataFrame, float]:
    apart = drawn["elapsed_s"].diff().drop_nulls()
    if len(apart) and float(str(apart.median())) >= _TICKS:
        passed = pl.col("elapsed_s").diff() / pl.col("at").diff()
        return drawn.with_columns(pace=passed), _TICK_S / float(str(drawn["at"].diff().median()))
    since_begin = _as_since_begin(drawn)
    forgetting = None if thinned else _as_forgetting(drawn)
    if since_begin is None:
        return (forgetting if forgetting is not None else drawn.with_columns(pace=pl.col("mean_s"))), 0.0
    if forgetting is not None and _is_restless(since_begin, forgetting):
        return forgetting, 0.0
    return since_begin


def _as_since_begin(drawn: pl.DataFrame) -> tuple[pl.DataFrame, float] | None:
    """The draws with the times behind means since the bar began, and the quantum; None where they are no such means."""
    keras = bool(drawn["per"].str.contains(_KERAS).any())
    if not keras and not _is_since_begin(drawn):
        return None
    count = drawn["done"].to_numpy() - float(keras)
    averaged = _since_begin(drawn["mean_s"].to_numpy(), count, drawn["again_"].to_numpy())
    if not _holds(averaged):
        return None
    unit = 0.001 if keras else min(0.01, 0.01 * float(str(drawn["mean_s"].median())) ** 2)
    timed = drawn.clear() if _is_broken(drawn, count) else drawn.with_columns(pace=as_column(averaged))
    return timed, unit if drawn["again_"].all() else undone_quantum(unit, np.maximum(count, 1))


def _as_forgetting(drawn: pl.DataFrame) -> pl.DataFrame | None:
    """The draws with the times behind means that forget; None where they are no such means."""
    newest = _forgetting(drawn["mean_s"].to_numpy(), drawn["done"].to_numpy(), drawn["again_"].to_numpy())
    moved = drawn.with_columns(pace=as_column(newest)).filter(pl.col("pace").is_not_nan())
    return moved if moved.height >= _FEWEST and _holds(moved["pace"].to_numpy()) else None


def _is_restless(since_begin: tuple[pl.DataFrame, float], forgetting: pl.DataFrame) -> bool:
    """Whether times swing from draw to draw beyond rounding, as means of the other kind would not have them."""
    timed, unit = since_begin
    if timed.is_empty():
        return False
    return _unrest(timed) > _unrest(forgetting) + unit / float(str(timed["pace"].median()))


def _unrest(timed: pl.DataFrame) -> float:
    """By how much the time of a step usually differs from that before, as a log."""
    apart = timed.filter(pl.col("pace") > 0)["pace"].log().diff().abs().median()
    return float(str(apart)) if apart is not None else 0.0


def _as_metrics(drawn: pl.DataFrame) -> pl.DataFrame:
    """The rows of a bar under the names of a metric: their value is its mean."""
    if "pace" not in drawn.columns:
        drawn = drawn.with_columns(pace=pl.lit(None, dtype=pl.Float64))
    rows = drawn.with_columns(
        lo=pl.col("at").shift(1),
        step=pl.col("at"),
        gstep=pl.lit(None, dtype=pl.Int64),
        name=pl.lit("bar"),
        raw_name="per",
        value=pl.when(pl.col("per").str.ends_with("/s")).then(1 / pl.col("mean_s")).otherwise(pl.col("mean_s")),
        value_class=pl.lit("finite"),
    )
    return rows.filter((pl.col("pace") > 0) & pl.col("pace").is_finite() & pl.col("lo").is_not_null())


def _is_since_begin(drawn: pl.DataFrame) -> bool:
    """Whether the mean times the count is the time since the bar began, where it shows that."""
    whole, elapsed = pl.col("mean_s") * pl.col("done"), pl.col("elapsed_s")
    alike = (whole - elapsed - _TICK_S / 2).abs() <= _TICK_S + _OF_ELAPSED * elapsed
    share = drawn.select(alike.mean()).item()
    return share is None or float(share) >= _ALIKE


def _is_broken(drawn: pl.DataFrame, count: Floats) -> bool:
    """Whether another process draws the bar on, or a bar goes on from steps that its mean may not count."""
    fresh, spent = drawn["again_"].to_numpy(), drawn["mean_s"].to_numpy() * count
    if (~fresh[1:] & (spent[1:] < _AGAIN * spent[:-1])).any():
        return True
    return bool((fresh & ~fresh.all() & (count > _RESUMED * drawn["plan"].to_numpy())).any())


def _holds(times: Floats) -> bool:
    return float(np.mean(times > 0)) >= _POSITIVE


def _since_begin(mean: Floats, count: Floats, fresh: np.ndarray) -> Floats:
    """Times between neighbouring draws, from means over all steps since the bar began."""
    whole = mean * count
    before = np.where(fresh, 0.0, np.concatenate([[0.0], whole[:-1]]))
    passed = count - np.where(fresh, 0.0, np.concatenate([[0.0], count[:-1]]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(passed > 0, (whole - before) / passed, mean)


def _forgetting(mean: Floats, count: Floats, fresh: np.ndarray) -> Floats:
    """Times between neighbouring draws, from tqdm's ratio of two exponential means, of steps and of seconds.

    A draw with the mean of the one before shows other words, and has no time of its own (NaN), unless steps for two new
    means were done since: then the speed stayed as it was.
    """
    new = fresh | np.concatenate([[True], mean[1:] != mean[:-1]])
    usual = quantiles_of(np.diff(count[new]).clip(min=1.0), [0.9])[0] if np.count_nonzero(new) > 1 else 1.0
    times, steps, seconds, last = np.full(len(mean), np.nan), 0.0, 0.0, 0.0
    for i in range(len(mean)):
        if fresh[i]:
            steps = seconds = last = 0.0
        if not new[i] and count[i] - last < 2 * usual:
            continue
        passed = max(count[i] - last, 1.0)
        steps = _WEIGHT * passed + (1 - _WEIGHT) * steps
        newest = (steps * mean[i] - (1 - _WEIGHT) * seconds) / _WEIGHT
        times[i], seconds, last = newest / passed if new[i] else mean[i], steps * mean[i], count[i]
    return times
