"""Which level of a run speaks for it where it became slower in mid-run."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from forensics.compare.decide import Answer
from forensics.compare.diff import diff
from forensics.model import Number
from forensics.store.run import Run, run_of


def paced(seed: int, *, fell: int | None = None, times: float = 7.0, every: int = 1) -> Run:
    """300 records of half a second a step; from the step `fell` on a step takes so many times as long."""
    steps = every * np.arange(1, 301)
    seconds = 0.5 * (1 + np.random.default_rng(seed).normal(0, 0.02, 300))
    seconds = np.where(steps >= (fell or steps[-1] + 1), times, 1.0) * seconds
    rows = {"source": "run.log", "seq": steps, "step": steps, "name": "step_time_s", "raw_name": "step_time"}
    return run_of("run", {"metrics": pl.DataFrame(rows | {"value": seconds})})


def climbing(seed: int, *, over: int) -> Run:
    """Records of which each takes a little longer than the one before, from step 60 on over so many steps: to twice."""
    steps = np.arange(1, 301)
    seconds = 0.5 * (1 + np.random.default_rng(seed).normal(0, 0.02, 300))
    rows = {"source": "run.log", "seq": steps, "step": steps, "name": "step_time_s", "raw_name": "step_time"}
    return run_of(
        "run", {"metrics": pl.DataFrame(rows | {"value": seconds * (1 + np.clip((steps - 60) / over, 0, 1))})}
    )


def told(cand: Run, *bases: Run) -> tuple[Answer | None, Number | None, float]:
    found = diff(bases, cand, names=("throughput",)).sections[0]
    assert found.change is not None
    return found.answer, found.numbers["since_step"], found.change


@pytest.mark.parametrize("every", [1, 10])
def test_a_candidate_that_falls_to_a_seventh_is_slower_from_that_step_on(every: int) -> None:
    answer, since, change = told(paced(1, fell=150 * every, every=every), paced(2, every=every))
    assert (answer, since) == (Answer.REGRESSION, 150 * every)
    assert change == pytest.approx(-6 / 7, abs=0.01)


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize(("apart", "together"), [(0, True), (7, True), (8, False)])
def test_runs_that_fell_at_one_step_are_compared_at_their_last_levels(
    every: int, apart: int, *, together: bool
) -> None:
    """A change of level is found to the record; eight records are the fewest that are a level."""
    base, cand = paced(2, fell=150 * every, every=every), paced(1, fell=(150 + apart) * every, every=every)
    answer, since, change = told(cand, base)
    assert (since is None) is together
    assert change == pytest.approx(0.0 if together else -6 / 7, abs=0.01)
    assert answer is not Answer.REGRESSION if together else answer is Answer.REGRESSION


def test_a_candidate_that_fell_further_at_the_same_step_is_slower() -> None:
    answer, _, change = told(paced(1, fell=150), paced(2, fell=150, times=3.0))
    assert answer is Answer.REGRESSION
    assert change == pytest.approx(-4 / 7, abs=0.02)


def test_one_base_that_did_not_fall_shows_that_the_step_need_not_be_slower() -> None:
    answer, since, _ = told(paced(1, fell=150), paced(2, fell=150), paced(3))
    assert (answer, since) == (Answer.REGRESSION, 150)


@pytest.mark.parametrize("over", [240, 100])
def test_a_candidate_whose_steps_grow_is_slower_by_what_they_took_and_its_climb_is_no_noise(over: int) -> None:
    answer, since, change = told(climbing(1, over=over), paced(2))
    assert answer is Answer.REGRESSION
    assert isinstance(since, int)
    assert 45 <= since <= 65
    assert change == pytest.approx(-0.31 if over == 240 else -0.43, abs=0.02)


def test_runs_that_grow_alike_do_not_differ_and_long_memory_is_no_climb() -> None:
    assert told(climbing(1, over=240), climbing(2, over=240))[0] is not Answer.REGRESSION
    steps, rng = np.arange(1, 301), np.random.default_rng(3)
    drift = 0.5 * np.exp(0.1 * np.sin(steps / 50) + rng.normal(0, 0.02, 300))
    rows = {"source": "run.log", "seq": steps, "step": steps, "name": "step_time_s", "raw_name": "step_time"}
    wave = run_of("run", {"metrics": pl.DataFrame(rows | {"value": drift})})
    assert told(wave, paced(2))[0] is Answer.INCONCLUSIVE
