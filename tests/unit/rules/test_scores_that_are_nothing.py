"""Scores that are zero, and error rates of all, while a model is trained (EVL028)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from forensics.rules.bad_eval.zero import score_zero
from forensics.rules.learning.evaluations import one_score
from forensics.store.run import Run, run_of

Series = Mapping[str, Sequence[float]]


def logged(series: Series) -> Run:
    rows = [
        {"source": "train.log", "seq": at, "line": at + 1, "attempt": 0, "step": at + 1, "name": name, "raw_name": name,
         "value": float(value), "value_class": "finite"}
        for name, values in series.items()
        for at, value in enumerate(values)
    ]  # fmt: skip
    return run_of("run", {"metrics": pl.DataFrame(rows)})


def told(**series: Sequence[float]) -> list[str]:
    return [finding.title for finding in score_zero(logged(series))]


@pytest.mark.parametrize(
    ("acc", "is_told"),
    [((0.03, 0.034, 0.03, 0.033, 0.039), True), ((0.03, 0.034, 0.03, 0.033, 0.041), False)],
    ids=["it stays", "it rises by a hundredth"],
)
def test_a_zero_beside_a_score_counts_while_that_one_stays(acc: Sequence[float], *, is_told: bool) -> None:
    assert bool(told(valid_bleu=[0] * 5, valid_acc=acc)) is is_told


def test_a_zero_beside_a_score_counts_from_five_evaluations_on() -> None:
    assert not told(loss=range(9, 0, -1), valid_bleu=[0] * 4, valid_acc=[0.03] * 4)


def test_a_count_beside_a_zero_is_no_score_that_rises() -> None:
    assert told(valid_bleu=[0] * 5, valid_score=range(5))


@pytest.mark.parametrize(("records", "is_told"), [(10, True), (9, False)])
def test_scores_of_the_training_alone_count_from_ten_records_on(records: int, *, is_told: bool) -> None:
    assert bool(told(loss=range(20, 20 - records, -1), train_accuracy=[0] * records)) is is_told


def test_scores_of_the_training_count_where_nothing_is_evaluated() -> None:
    assert not told(train_accuracy=[0] * 10, val_accuracy=[0.1, 0.2])
    assert not told(train_accuracy=[0] * 10, train_f1=[0] * 9 + [0.1])


@pytest.mark.parametrize(
    ("name", "rates", "is_told"),
    [
        ("valid_wer", [100] * 5, True),
        ("eval_cer", [1] * 5, True),
        ("valid_wer", [100] * 4, False),
        ("valid_wer", [100, 100, 99.5, 100, 100], False),
        ("valid_loss", [1] * 5, False),
    ],
)
def test_an_error_rate_of_all_is_a_score_of_nothing(name: str, rates: Sequence[float], *, is_told: bool) -> None:
    assert bool(told(**{name: rates})) is is_told


@pytest.mark.parametrize(
    ("score", "times", "is_told"), [(0.6838235, 10, True), (0.6838235, 9, False), (0.68, 10, False)]
)
def test_one_score_of_unnamed_data_counts_where_it_is_precise(score: float, times: int, *, is_told: bool) -> None:
    assert bool([*one_score(logged({"accuracy": [score] * times}))]) is is_told


def test_one_score_of_unnamed_data_does_not_count_beside_an_evaluation() -> None:
    assert not [*one_score(logged({"accuracy": [0.6838235] * 10, "val_accuracy": [0.1, 0.3, 0.5]}))]
