"""Progress bars as clocks: the training's bar among several, its steps over the epochs, and the times behind its means.

A bar draws a mean: since it began (tqdm without smoothing, Lightning, Keras), or one that forgets (tqdm's own, with a
weight of 0.3 for the newest). What went into it is got back, so that a slow step shows where it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.analyses.pace.average import undone_quantum
from forensics.case.curves.loss import Floats
from forensics.store.run import Run

_SPEEDS = ("bar_rate", "bar_seconds", "bar_ms")
_FEWEST = 12  # draws of one bar below which it is no clock
_WEIGHT = 0.3  # of the newest draw in tqdm's exponential mean, its default
_POSITIVE = 0.9  # share of times that must be positive for a mean to be what it is taken for
#: A bar that begins behind this share of its total goes on from a checkpoint, and may or may not count steps before it.
_RESUMED = 0.1
_AGAIN = 0.9  # the time since a bar began never falls, but where another process draws it on
_GROUP = ["source", "attempt", "rank"]


def bars(run: Run) -> Iterator[tuple[pl.DataFrame, float]]:
    """Give the training's bar of each source, attempt and rank: its rows with `at`, `lo`, `pace`, and the quantum.

    Rows are those of the metrics table that print the speed, with the step that the bar counts; `pace` is in seconds
    per step, the quantum the unit that it is printed in.
    """
    own = pl.col("name").is_in(["bar_step", "bar_total", *_SPEEDS]) & pl.col("value").is_finite()
    rows = run.scan("metrics").filter(own).with_columns(pl.col("attempt").fill_null(0)).sort("source", "seq").collect()
    for _, part in rows.group_by(_GROUP, maintain_order=True):
        drawn = _drawn(part)
        if drawn.height >= _FEWEST:
            yield _timed(drawn)


def _drawn(part: pl.DataFrame) -> pl.DataFrame:
    """One row for each step that the training's bar shows: the bar of the total that is drawn most often.

    Empty where the bar of a resumed run does not tell what its mean counts.
    """
    counts = part.filter(pl.col("name").is_in(["bar_step", "bar_total"])).pivot(
        "name", index="seq", values="value", aggregate_function="first", maintain_order=True
    )
    if not {"bar_step", "bar_total"} <= set(counts.columns):
        return part.clear()
    total = float(str(counts["bar_total"].mode().max()))
    speeds = part.filter(pl.col("name").is_in(_SPEEDS)).join(
        counts.filter(pl.col("bar_total") == total), on="seq", how="inner", maintain_order="left"
    )
    again = (pl.col("bar_step") < pl.col("bar_step").shift(1)).fill_null(value=True)
    if speeds.select((again & (pl.col("bar_step") > _RESUMED * total)).any()).item():
        return part.clear()
    numbered = speeds.with_columns(epoch_=again.cum_sum() - 1, count_=pl.col("bar_step"))
    at = (pl.col("epoch_") * pl.col("bar_total") + pl.col("bar_step")).cast(pl.Int64)
    return numbered.with_columns(at=at, step=at).filter(pl.col("at") > pl.col("at").cum_max().shift(1).fill_null(-1))


def _timed(drawn: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    name, value = drawn["name"], pl.col("value")
    seconds = pl.when(pl.col("name") == "bar_rate").then(1 / value)
    mean = (
        drawn.select(seconds.when(pl.col("name") == "bar_ms").then(value / 1000).otherwise(value))
        .to_series()
        .to_numpy()
    )
    keras = bool((name == "bar_ms").any())
    count = drawn["count_"].to_numpy() - float(keras)
    fresh = np.concatenate([[True], np.diff(drawn["epoch_"].to_numpy()) != 0])
    averaged = _since_begin(mean, count, fresh)
    times, quantum = mean, 0.0
    if _holds(averaged):
        unit = 0.001 if keras else min(0.01, 0.01 * float(np.median(mean)) ** 2)
        times, quantum = averaged, undone_quantum(unit, np.maximum(count, 1))
        spent = mean * count
        if (~fresh[1:] & (spent[1:] < _AGAIN * spent[:-1])).any():
            return drawn.clear(), 0.0
    elif _holds(forgetting := _forgetting(mean, count, fresh)):
        times = forgetting
    rows = drawn.with_columns(pace=pl.Series(times), lo=pl.col("at").shift(1)).drop("epoch_", "count_")
    rows = rows.drop("bar_step", "bar_total").filter((pl.col("pace") > 0) & pl.col("pace").is_finite())
    return rows.filter(pl.col("lo").is_not_null()), quantum


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
    """Times between neighbouring draws, from tqdm's ratio of two exponential means, of steps and of seconds."""
    times, steps, seconds, last = np.empty(len(mean)), 0.0, 0.0, 0.0
    for i in range(len(mean)):
        if fresh[i]:
            steps = seconds = last = 0.0
        passed = max(count[i] - last, 1.0)
        steps = _WEIGHT * passed + (1 - _WEIGHT) * steps
        newest = (steps * mean[i] - (1 - _WEIGHT) * seconds) / _WEIGHT
        times[i], seconds, last = newest / passed, steps * mean[i], count[i]
    return times
