"""What one pair of results says: whether it is far beyond its errors, which side is worse, and what all of them are."""

from __future__ import annotations

from typing import Any

import pytest

from forensics.analyses.evals.settings import Compared, Unlike
from forensics.compare.decide import Answer
from forensics.compare.evals import _tests as tests_of
from forensics.compare.evals.comparison import Pair, identical
from forensics.compare.sections.evals import _answer

MODEL = Compared(model=(Unlike("model", "a", "b", "x", "y"),))


def row(value: float) -> dict[str, Any]:
    return {"task": "arc", "metric": "acc", "filter": None, "value": value, "higher_is_better": True}


def pair(
    base: float, cand: float, se: float | None = 0.01, *, p: float | None = None, settings: Compared | None = None
) -> Pair:
    tested = None if se is None else tests_of.Tested("z", cand - base, se, 0.5)
    return Pair(("arc", "acc", "none"), row(base), row(cand), settings or Compared(), 0, tested, p)


@pytest.mark.parametrize(
    ("delta", "se", "is_far"), [(0.051, 0.01, True), (0.049, 0.01, False), (-0.051, 0.01, True), (0.5, 0.0, False)]
)
def test_a_result_of_one_model_is_odd_beyond_five_errors(delta: float, se: float, is_far: bool) -> None:
    assert pair(0.4, 0.4 + delta, se).unexplained is is_far
    assert not pair(0.4, 0.4 + delta, se, settings=MODEL).unexplained
    assert not pair(0.4, 0.9, None).unexplained


def test_a_difference_is_real_below_five_percent_over_all_tasks() -> None:
    assert pair(0.4, 0.5, p=0.049).significant
    assert not pair(0.4, 0.5, p=0.05).significant
    assert not pair(0.4, 0.5).significant
    assert (pair(0.4, 0.5).worse, pair(0.5, 0.4).worse, pair(0.4, 0.4).worse) == (False, True, None)


@pytest.mark.parametrize(("count", "is_same"), [(9, False), (10, True)])
def test_ten_equal_results_of_two_models_are_those_of_one(count: int, is_same: bool) -> None:
    equal = [pair(0.4, 0.4, settings=MODEL)] * count
    assert identical(equal) is is_same
    assert not identical([pair(0.4, 0.4)] * count)
    assert not identical([*equal, pair(0.4, 0.5, settings=MODEL)])


@pytest.mark.parametrize(
    ("level", "end", "answer"),
    [
        (0.5, 0.0199, Answer.NO_CHANGE),
        (0.5, 0.0201, Answer.INCONCLUSIVE),
        (1.0, 0.0201, Answer.INCONCLUSIVE),
        (40.0, 1.99, Answer.NO_CHANGE),
        (40.0, 2.01, Answer.INCONCLUSIVE),
    ],
)
def test_results_are_the_same_where_the_interval_ends_within_two_points_or_a_twentieth(
    level: float, end: float, answer: Answer
) -> None:
    assert _answer([pair(level, level, end / 1.96, p=1.0)]) is answer


def test_one_real_fall_is_a_regression_and_a_rise_alone_an_improvement() -> None:
    fall, rise, same = pair(0.5, 0.3, p=0.01), pair(0.3, 0.5, p=0.01), pair(0.4, 0.4, 0.001, p=1.0)
    assert _answer([rise, fall, same]) is Answer.REGRESSION
    assert _answer([rise, same]) is Answer.IMPROVEMENT
    assert _answer([same]) is Answer.NO_CHANGE
    blocked = pair(0.4, 0.4, 0.001, settings=Compared(blocks=MODEL.model))
    assert _answer([same, blocked]) is Answer.INCONCLUSIVE
    assert _answer([pair(0.4, 0.4, None)]) is Answer.INCONCLUSIVE
