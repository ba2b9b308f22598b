"""Slow steps: where they begin, and what only looks like them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate

import polars as pl
import pytest

from forensics.model import Finding
from forensics.rules.slowdown.level_shift import step_time_level_shift
from forensics.signals.level import climb_of, shift_of
from forensics.store.run import Run, run_of


def clock_run(paces: Sequence[float], *, every: int = 10, evals: Sequence[int] = ()) -> Run:
    """Build a run that prints its training clock, one record each `every` steps, and an evaluation at some steps."""
    clock = [
        {"source": "run.log", "seq": i, "step": i * every, "name": "train_time_s", "raw_name": "t", "value": v}
        for i, v in enumerate(accumulate((p * every for p in paces), initial=0.0))
    ]
    rows = [{**clock[0], "step": s, "name": "eval_loss", "raw_name": "e", "value": 1.0} for s in evals]
    return run_of("run", {"metrics": pl.DataFrame([*clock, *rows])})


def printed_run(name: str, values: Sequence[float], **others: Sequence[float]) -> Run:
    rows = [
        {"source": "run.log", "seq": i, "step": i, "name": key, "raw_name": key, "value": value}
        for key, series in {name: values, **others}.items()
        for i, value in enumerate(series)
    ]
    return run_of("run", {"metrics": pl.DataFrame(rows)})


def found(run: Run) -> list[Finding]:
    return list(step_time_level_shift(run))


def noisy(count: int, level: float, seed: int, noise: float = 0.05) -> list[float]:
    chance = random.Random(seed)
    return [level * chance.lognormvariate(0, noise) for _ in range(count)]


def test_the_onset_is_the_first_slow_record_and_the_last_fast_one_bounds_it() -> None:
    [hit] = found(clock_run(noisy(60, 0.2, 1) + noisy(30, 0.5, 2)))
    assert (hit.onset.step_lo, hit.onset.step) == (600, 610)
    assert hit.numbers["ratio"] == pytest.approx(2.5, rel=0.1)


def test_three_slow_records_at_the_end_are_enough_when_they_are_very_slow() -> None:
    [hit] = found(clock_run(noisy(100, 0.2, 3) + noisy(3, 0.7, 4)))
    assert hit.onset.step == 1010


def test_two_slow_records_at_the_end_are_not_enough() -> None:
    assert not found(clock_run(noisy(100, 0.2, 5) + noisy(2, 0.9, 6)))


def test_a_run_that_recovers_is_not_slow() -> None:
    assert not found(clock_run(noisy(60, 0.2, 7) + noisy(40, 0.6, 8) + noisy(20, 0.2, 9)))


def test_slow_first_steps_are_warm_up() -> None:
    assert not found(clock_run([9.0, 2.0, *noisy(40, 0.2, 10)]))


def test_pauses_for_evaluations_are_not_slow_steps() -> None:
    paces = [0.6 if i % 4 == 3 and i > 40 else 0.2 for i in range(80)]
    assert not found(clock_run(paces, evals=[10 * i for i in range(40, 80) if i % 4 == 3]))


def test_a_staircase_of_moderate_steps_is_a_schedule() -> None:
    assert not found(clock_run(noisy(40, 0.1, 11) + noisy(30, 0.18, 12) + noisy(30, 0.26, 13)))


def test_one_moderate_step_is_a_slowdown() -> None:
    [hit] = found(clock_run(noisy(40, 0.1, 14) + noisy(40, 0.18, 15)))
    assert hit.onset.step == 410


def test_a_drift_without_return_is_a_slowdown() -> None:
    paces = [0.1 * 1.015**i for i in range(100)]
    [hit] = found(clock_run(paces))
    assert "drift" in hit.title or hit.numbers["ratio"] > 1.5


def test_one_printed_digit_is_not_a_doubling() -> None:
    assert not found(printed_run("step_time_s", [0.01] * 20 + [0.02] * 20))


def test_longer_steps_with_the_same_throughput_are_not_slower() -> None:
    times = noisy(30, 0.2, 16) + noisy(30, 0.6, 17)
    assert not found(printed_run("step_time_s", times, tokens_per_sec=noisy(60, 5000.0, 18)))
    assert found(printed_run("step_time_s", times, tokens_per_sec=[5000.0] * 30 + [1700.0] * 30))


def test_a_throughput_alone_is_a_clock() -> None:
    [hit] = found(printed_run("tokens_per_sec", noisy(30, 5000.0, 19) + noisy(30, 1500.0, 20)))
    assert hit.onset.step == 30
    assert "per token" in hit.title


@pytest.mark.parametrize("seed", range(40))
def test_a_steady_run_with_heavy_noise_is_silent(seed: int) -> None:
    chance = random.Random(seed)
    paces = [p * (4 if chance.random() < 0.05 else 1) for p in noisy(chance.randint(5, 300), 0.2, seed, 0.2)]
    assert not found(clock_run(paces))


def test_an_edge_keeps_its_place_and_a_lone_outlier_is_none() -> None:
    shift = shift_of(pl.Series([1.0, 1.0, 1.0, 9.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]), edge=3, near=3)
    assert shift is not None
    assert (shift.index, shift.before, shift.after) == (6, 1.0, 3.0)


def test_a_falling_series_neither_shifts_nor_climbs() -> None:
    falling = pl.Series([float(v) for v in range(40, 0, -1)])
    assert shift_of(falling, edge=3, near=3) is None
    assert climb_of(falling, parts=4) is None


def test_a_rate_that_was_once_zero_is_read_without_that_record() -> None:
    rates = [*noisy(60, 5000.0, 19), 0.0, *noisy(60, 5000.0, 21), *noisy(60, 1500.0, 20)]
    assert [f.onset.step for f in found(printed_run("tokens_per_sec", rates))] == [121]
