"""Figures: nothing that matters is thinned away, and each run has those that its data can give."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.figure import Chart, Heat, Lanes
from forensics.figures._thin import MOST_GAPS, note_of, thinned
from forensics.store.run import run_of

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
ANY = st.floats(allow_nan=True, allow_infinity=True)


def figures_of(name: str) -> dict[str, object]:
    run = pipeline.ingest_run(RUNS / name)
    return {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}


@given(st.lists(ANY, max_size=400), st.integers(4, 60))
def test_thinning_keeps_the_outline_and_every_place_that_is_not_finite(values: list[float], most: int) -> None:
    y = np.array(values, float)
    x = np.arange(len(y), dtype=float)
    curve = thinned("a", x, y, most)
    finite = y[np.isfinite(y)]
    assert len(curve.x) == len(curve.y) <= most + 2
    assert curve.records == len(y)
    if len(finite):
        assert (min(curve.y), max(curve.y)) == (finite.min(), finite.max())
        assert (curve.y[0], curve.y[-1]) == (finite[0], finite[-1])
    assert list(curve.x) == sorted(curve.x)
    bad = np.flatnonzero(~np.isfinite(y))
    assert all(any(g.first <= b <= g.last for g in curve.gaps) for b in bad)
    assert sum(g.records for g in curve.gaps) == len(bad)


def test_one_spike_among_a_million_records_is_drawn() -> None:
    y = np.ones(1_000_000)
    y[654_321], y[123_456] = 50.0, nan
    curve = thinned("a", np.arange(1_000_000, dtype=float), y, 200)
    assert 50.0 in curve.y
    assert [(g.first, g.what) for g in curve.gaps] == [(123_456.0, "NaN")]
    assert "smallest and the largest of each bucket" in note_of((curve,))


def test_stretches_are_joined_only_when_there_are_very_many() -> None:
    y = np.tile([1.0, inf], 1000)
    gaps = thinned("a", np.arange(2000.0), y, 100).gaps
    assert len(gaps) == MOST_GAPS
    assert sum(g.records for g in gaps) == 1000
    assert {g.what for g in gaps} == {"+inf"}


def test_the_loss_of_a_nan_run_marks_onset_and_last_clean_checkpoint() -> None:
    loss = figures_of("nan-bad-sample-torchtitan")["loss"]
    assert isinstance(loss, Chart)
    assert {m.role for m in loss.marks} >= {"onset", "clean"}
    assert loss.curves[0].gaps
    assert "NAN001" in loss.rules


def test_a_run_of_several_ranks_has_a_map_and_a_time_line_with_the_cause_first() -> None:
    found = figures_of("oom-then-hang-torchrun")
    heat, lanes = found["progress"], found["time-line"]
    assert isinstance(heat, Heat)
    assert len(heat.rows) >= 2
    assert isinstance(lanes, Lanes)
    assert lanes.moments[0].primary
    assert "OOM" in lanes.moments[0].text


def test_an_onset_deep_in_a_long_run_is_drawn_again_from_near() -> None:
    steps = 20_000
    loss = [2.0 + (s % 7) / 100 if s < 15_000 else nan for s in range(steps)]
    rows = pl.DataFrame(
        {"source": "a", "seq": range(steps), "step": range(steps), "line": range(1, steps + 1), "name": "loss",
         "raw_name": "loss", "value": loss}
    )  # fmt: skip
    run = run_of("a", {"metrics": rows})
    report = pipeline.with_figures(run, pipeline.report_of(run))
    near = {f.key: f for f in report.figures}["loss-around-the-onset"]
    assert isinstance(near, Chart)
    assert min(near.curves[0].x) == 14_940.0


@pytest.mark.parametrize("name", sorted(p.name for p in RUNS.iterdir() if p.is_dir()))
def test_every_run_gives_the_same_figures_twice_with_keys_of_their_own(name: str) -> None:
    first, second = figures_of(name), figures_of(name)
    assert repr(first) == repr(second)
    run = pipeline.ingest_run(RUNS / name)
    keys = [f.key for f in pipeline.with_figures(run, pipeline.report_of(run)).figures]
    assert len(keys) == len(set(keys))


def test_an_empty_run_has_no_figures() -> None:
    run = run_of("empty", {})
    assert pipeline.with_figures(run, pipeline.report_of(run)).figures == ()
