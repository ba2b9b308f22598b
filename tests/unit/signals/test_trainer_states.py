"""Trainer states of one training: copies told apart, rows of only one state kept, conflicts kept and marked."""

from __future__ import annotations

import math

import polars as pl

from forensics.signals.trainer_states import states, without_copies
from forensics.store.schema import conform

Row = tuple[str, int, str, float]


def frames(rows: list[Row]) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    columns = list(zip(*[(s, n, n, m, m, v) for s, n, m, v in rows], strict=True))
    names = ("source", "seq", "step", "name", "raw_name", "value")
    metrics = conform("metrics", pl.DataFrame(dict(zip(names, map(list, columns), strict=True))))
    paths = sorted({row[0] for row in rows})
    sources = conform("sources", pl.DataFrame({"source": paths, "ingester": ["trainer_state"] * len(paths)}))
    return metrics.lazy(), sources.lazy()


def history(source: str, last: int, *, shift: float = 0.0) -> list[Row]:
    return [(source, step, "loss", 3.0 - step / 10 + shift) for step in range(1, last + 1)]


def test_the_state_that_reaches_furthest_counts_and_the_others_are_copies() -> None:
    rows = history("out/checkpoint-4/trainer_state.json", 4) + history("out/checkpoint-8/trainer_state.json", 8)
    kept = without_copies(*frames(rows)).collect()
    assert kept["source"].unique().to_list() == ["out/checkpoint-8/trainer_state.json"]
    assert kept.height == 8


def test_the_state_of_the_training_itself_goes_before_a_checkpoint_of_the_same_step() -> None:
    rows = history("checkpoint-4/trainer_state.json", 4) + history("trainer_state.json", 4)
    assert without_copies(*frames(rows)).collect()["source"].unique().to_list() == ["trainer_state.json"]


def test_a_different_value_of_the_same_step_is_kept_and_is_a_conflict() -> None:
    old = history("checkpoint-3/trainer_state.json", 3)
    old[2] = (*old[2][:3], 9.5)
    metrics, sources = frames(old + history("checkpoint-6/trainer_state.json", 6))
    marked = states(metrics, sources).filter("conflict").sort("source").collect()
    assert marked["step"].to_list() == [3, 3]
    assert marked["copy"].to_list() == [False, False]
    assert without_copies(metrics, sources).collect().height == 7


def test_a_nan_is_the_copy_of_a_nan() -> None:
    rows = [("checkpoint-1/trainer_state.json", 1, "loss", math.nan), ("trainer_state.json", 1, "loss", math.nan)]
    assert without_copies(*frames(rows)).collect()["source"].to_list() == ["trainer_state.json"]


def test_two_trainings_of_one_run_are_not_copies_of_each_other() -> None:
    rows = history("a/trainer_state.json", 3) + history("b/trainer_state.json", 3)
    assert without_copies(*frames(rows)).collect().height == 6


def test_the_history_after_a_resume_that_was_rewritten_keeps_both_branches() -> None:
    rows = history("checkpoint-4/trainer_state.json", 4) + history("checkpoint-2/trainer_state.json", 2, shift=0.5)
    metrics, sources = frames(rows)
    assert without_copies(metrics, sources).collect().height == 6
    assert states(metrics, sources).filter("conflict").collect()["step"].unique().sort().to_list() == [1, 2]


def test_other_sources_pass_untouched() -> None:
    metrics, sources = frames(history("train.log", 3))
    sources = sources.with_columns(ingester=pl.lit("text_log"))
    assert without_copies(metrics, sources).collect().equals(metrics.collect())
