"""The parts of a step that a run times: their units, their sum where nothing times the whole, and which rose."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from forensics.analyses.pace.clocks import clocks
from forensics.analyses.pace.parts import data_rise, seconds_of_parts
from forensics.analyses.recorded import recorded
from forensics.store.run import Run, run_of


def timed(**series: Sequence[float]) -> Run:
    """A run with one value of each series at every step from 1 on."""
    frames = [
        pl.DataFrame({"seq": range(len(values)), "step": range(1, len(values) + 1), "value": values}).with_columns(
            pl.col("value").cast(pl.Float64), source=pl.lit("a.csv"), line=pl.col("seq"), name=pl.lit(name),
            raw_name=pl.lit(name),
        )
        for name, values in series.items()
    ]  # fmt: skip
    return run_of("run", {"metrics": pl.concat(frames)})


def test_parts_in_milliseconds_are_seconds() -> None:
    told = seconds_of_parts(timed(forward_time=[1.0], backward_time_ms=[1.0], data=[1.0]))
    assert told == {"forward_time": 1.0, "backward_time_ms": pytest.approx(0.001), "data": 1.0}


def test_parts_together_time_a_step_that_nothing_else_times() -> None:
    (clock,) = clocks(timed(loss=[2.0] * 40, forward_time=[0.5] * 40, backward_time_ms=[700.0] * 40))
    assert clock.rows["pace"].to_list() == pytest.approx([1.2] * 39)
    assert clock.notes == ("the sum of the parts of a step",)


@pytest.mark.parametrize(("name", "seen"), [("Data", True), ("data_wait", True), ("forward_time", False)])
def test_whatever_names_the_wait_for_data_is_seen_as_its_recording(name: str, seen: bool) -> None:
    assert ("data_time" in recorded(timed(loss=[2.0] * 4, **{name: [0.5] * 4}))) is seen


def test_one_part_alone_times_no_step() -> None:
    assert clocks(timed(loss=[2.0] * 40, forward_time=[0.5] * 40)) == ()


def test_of_several_waits_the_one_that_rose_most_is_told() -> None:
    run = timed(data_time=[0.1] * 20 + [0.3] * 20, loader_time=[0.1] * 20 + [0.9] * 20, data_wait=[0.2] * 40)
    rise = data_rise(run, 21, None)
    assert rise is not None
    assert (rise.before, rise.after, rise.added) == pytest.approx((0.1, 0.9, 0.8))
