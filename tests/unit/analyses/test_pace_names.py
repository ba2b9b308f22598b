from __future__ import annotations

import polars as pl
import pytest

from forensics.analyses.pace.clocks import clocks
from forensics.analyses.pace.names import pace_of
from forensics.analyses.pace.parts import is_part
from forensics.dialects.names import is_each_time, is_since_start
from forensics.store.run import run_of


@pytest.mark.parametrize(
    ("name", "raw_name", "form"),
    [
        ("step_time_s", "train_time", "time"),
        ("iter_time", "iter_time", "time"),
        ("data_time_s", "iter_time", None),
        ("my_iter_time", "iter_time", "time"),
        ("loss", None, None),
        ("utt/s", "utt_s", "rate"),
        ("task/s", "task_s", None),  # of a bar that evaluations draw
    ],
)
def test_a_printed_name_counts_where_the_canonical_one_means_nothing_else(
    name: str, raw_name: str | None, form: str | None
) -> None:
    found = pace_of(name, raw_name)
    assert (found.form if found is not None else None) == form


@pytest.mark.parametrize("name", ["batch_time", "batch time", "Batch Time (s)", "time"])
def test_the_time_of_a_batch_is_no_wait_for_data(name: str) -> None:
    assert not is_part(name)


@pytest.mark.parametrize("name", ["data_time", "batch_load_time", "batch_wait", "loader_time", "data_time_ms"])
def test_what_is_spent_until_a_batch_is_there_is_a_part_of_a_step(name: str) -> None:
    assert is_part(name)


@pytest.mark.parametrize("name", ["sec", "Seconds", "took", "duration", "dur", "time (s)"])
def test_seconds_are_a_time_of_each_step_where_they_are_measured_anew(name: str) -> None:
    found = pace_of(name, name)
    assert found is not None
    assert found.form == "anew"


@pytest.mark.parametrize("name", ["ips", "throughput", "ex/s", "frames/s", "img/s"])
def test_samples_in_a_second_are_a_rate(name: str) -> None:
    found = pace_of(name, name)
    assert found is not None
    assert found.form == "rate"


@pytest.mark.parametrize(
    ("name", "unit"), [("steps/min", "step"), ("images per minute", "sample"), ("tokens_per_min", "token")]
)
def test_a_rate_of_a_minute_is_a_sixtieth_of_that_of_a_second(name: str, unit: str) -> None:
    found = pace_of(name, name)
    assert found is not None
    assert (found.form, found.unit, found.scale) == ("rate", unit, 1 / 60)


@pytest.mark.parametrize(
    "name", ["time/step", "time per iteration", "time_per_batch", "time/it", "t_iter", "t/step", "batch_t"]
)
def test_a_time_for_each_step_is_one(name: str) -> None:
    found = pace_of(name, name)
    assert found is not None
    assert (found.form, found.scale) == ("time", 1.0)


def records_of_a_wall(records: int, second_s: float) -> int:
    """How many records the clock of a log has that prints whole seconds, one record every `second_s`."""
    rows = [
        {
            "source": "a.log",
            "attempt": 0,
            "rank": None,
            "seq": at,
            "line": at,
            "step": at,
            "name": "loss",
            "raw_name": "loss",
            "value": 1.0,
            "value_class": "finite",
            "t_ns": int(at * second_s) * 10**9,
        }
        for at in range(records)
    ]
    types = {"attempt": pl.Int32, "rank": pl.Int32, "seq": pl.Int64, "step": pl.Int64, "t_ns": pl.Int64}
    (clock,) = clocks(run_of("run", {"metrics": pl.DataFrame(rows).cast(types)}))  # pyright: ignore[reportArgumentType]
    return len(clock)


def test_whole_seconds_are_joined_to_forty_of_them_where_thirty_records_are_left() -> None:
    assert 28 <= records_of_a_wall(600, 2.1) <= 32
    assert 36 <= records_of_a_wall(300, 2.1) <= 40


GROWING = [0.1 * n + (0.12 if n in (8, 14) else 0) for n in range(1, 31)]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (GROWING, True),
        ([0.1 * n + 0.12 * (n == 8) for n in range(1, 31)], False),
        ([0.1 * (n % 12) + 0.1 for n in range(40)], False),
        ([0.1 * n + 0.12 * (n in (8, 14)) for n in range(1, 42)], False),
        ([0.1 * n for n in range(30)], False),
    ],
    ids=["two dips", "one dip", "restarts", "too few of many", "a clock"],
)
def test_a_time_that_grows_with_dips_is_no_clock(values: list[float], *, told: bool) -> None:
    assert is_each_time(values) == told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.5 + n for n in range(13)], True),
        ([0.5 + n for n in range(12)], False),
        ([0.5, 0.5, *range(1, 12)], True),
        ([0.5, 2.0, 1.9, *range(2, 12)], False),
        ([1.0 + 0.5 * n for n in range(18)], False),
        ([1.0 + 0.5 * n for n in range(19)], True),
    ],
    ids=["a clock", "too few", "equal ones", "a dip", "not tenfold", "tenfold"],
)
def test_a_time_that_only_rises_to_ten_times_its_first_is_a_clock_since_the_start(
    values: list[float], *, told: bool
) -> None:
    assert is_since_start(values) == told


def paces_of(times: list[float], name: str) -> list[float]:
    """The paces of the clock of a table that prints times under a name; none where they are no clock."""
    rows = [
        {
            "source": "a.csv",
            "attempt": 0,
            "rank": None,
            "seq": at,
            "line": at,
            "step": at,
            "name": name,
            "raw_name": name,
            "value": time,
            "value_class": "finite",
            "t_ns": None,
        }
        for at, time in enumerate(times, 1)
    ]
    types = {"attempt": pl.Int32, "rank": pl.Int32, "seq": pl.Int64, "step": pl.Int64, "t_ns": pl.Int64}
    found = clocks(run_of("run", {"metrics": pl.DataFrame(rows).cast(types)}))  # pyright: ignore[reportArgumentType]
    return found[0].seconds.tolist() if found else []


@pytest.mark.parametrize("name", ["elapsed", "elapsed_s", "time_elapsed", "wall_time", "total_time", "time"])
def test_seconds_since_the_start_are_differenced(name: str) -> None:
    assert paces_of([0.253 * at for at in range(1, 101)], name) == pytest.approx([0.253] * 99)


@pytest.mark.parametrize("name", ["t", "T", "clock"])
def test_a_letter_of_time_is_a_clock_since_the_start_and_never_a_time_of_each_step(name: str) -> None:
    assert paces_of([0.253 * at for at in range(1, 101)], name) == pytest.approx([0.253] * 99)
    assert paces_of([0.9 + at % 7 / 10 for at in range(1, 101)], name) == []


def test_whole_seconds_since_the_start_are_joined_as_many_steps_lie_within_one() -> None:
    paces = paces_of([float(at // 4) for at in range(1, 4001)], "elapsed")
    assert len(paces) == 62
    assert paces == pytest.approx([0.25] * 62, rel=0.02)


def test_a_time_of_each_step_that_grows_without_a_dip_is_no_clock() -> None:
    assert paces_of([0.25 + 0.01 * at for at in range(1, 101)], "elapsed") == []


@pytest.mark.parametrize(("name", "own"), [("fwd+bwd (s)", True), ("forward_backward_ms", True), ("forward", False)])
def test_forward_and_backward_together_are_work_of_the_rank_itself(name: str, own: bool) -> None:
    assert is_part(name, "own") is own
