"""Files of which only the path says that they hold evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from forensics import triage
from forensics.case.names.splits import split_by_path
from forensics.case.series import keys_of, metric_rows
from forensics.dialects.names import canonical
from forensics.store.run import Run, run_of


@pytest.mark.parametrize(
    ("held", "other", "word"),
    [
        ("plots/valid/acc.tsv", "plots/train/acc.tsv", "valid"),
        ("catboost_info/test_error.tsv", "catboost_info/learn_error.tsv", "test"),
        ("logs/validation/events.out.tfevents.17.a.9.v2", "logs/train/events.out.tfevents.16.a.8.v2", "validation"),
        ("runs/loss_val/events.out.tfevents.1", "runs/loss_train/events.out.tfevents.1", "val"),
        ("val/val.csv", "train/train.csv", "val"),
    ],
)
def test_a_file_is_of_held_out_data_where_a_like_one_is_of_training(held: str, other: str, word: str) -> None:
    assert split_by_path([held, other]) == {held: word}


@pytest.mark.parametrize(
    "paths",
    [
        ["test/metrics.csv", "base/metrics.csv"],
        ["test/metrics.csv", "train.csv"],
        ["val/acc.csv", "train/loss.csv"],
        ["test/train_log.csv", "train/train_log.csv"],
        ["val/test.csv", "train/train.csv"],
        ["trainer/acc.csv", "valid/acc.csv"],
    ],
)
def test_a_word_in_a_path_alone_says_nothing(paths: Sequence[str]) -> None:
    assert split_by_path(paths) == {}


def _made(*rows: tuple[str, str]) -> Run:
    values = {
        "source": [source for source, _ in rows],
        "seq": range(len(rows)),
        "raw_name": [raw for _, raw in rows],
        "name": [canonical(raw).canonical for _, raw in rows],
        "value": [float(n) for n in range(len(rows))],
    }
    return run_of("run", {"metrics": pl.DataFrame(values)})


def test_only_names_of_held_out_files_that_name_no_data_themselves_are_changed() -> None:
    rows = ("train/a.csv", "loss"), ("test/a.csv", "loss"), ("test/a.csv", "train_acc"), ("b.csv", "loss")
    keys = keys_of(_made(*rows)).select("source", "raw_name", "name").rows()
    assert set(keys) == {
        ("train/a.csv", "loss", "loss"),
        ("test/a.csv", "test/loss", "eval_loss"),
        ("test/a.csv", "train_acc", canonical("train_acc").canonical),
        ("b.csv", "loss", "loss"),
    }
    found = metric_rows(_made(*rows), pl.col("name") == "eval_loss").collect()
    assert found["value"].to_list() == [1.0]


def test_each_word_of_held_out_data_means_an_evaluation() -> None:
    for word in ("dev", "te", "testing", "val"):
        keys = keys_of(_made(("train/a.csv", "loss"), (f"{word}/a.csv", "loss"), (f"{word}/a.csv", "Gini")))
        assert set(keys["name"]) == {"loss", "eval_loss", f"{word}/Gini"}


def test_a_name_that_no_row_has_any_more_is_not_known() -> None:
    keys = keys_of(_made(("train/a.csv", "accuracy"), ("val/a.csv", "loss")))
    assert set(keys["name"]) == {"accuracy", "eval_loss"}


def test_the_test_error_of_another_file_is_no_training_loss(tmp_path: Path) -> None:
    rows = range(0, 600, 10)
    learn = "".join(f"{i}\t{0.65 * 0.99**i + 0.01 * (i % 3):.6f}\n" for i in rows)
    test = "".join(f"{i}\t{0.66 + 0.0007 * abs(i - 30) + 0.0003 * (i % 4):.6f}\n" for i in rows)
    (tmp_path / "learn_error.tsv").write_text(f"iter\tLogloss\n{learn}")
    (tmp_path / "test_error.tsv").write_text(f"iter\tLogloss\n{test}")
    verdict = triage(tmp_path).verdict
    assert (verdict.cause, verdict.onset.step if verdict.onset else None) == ("overfit", 40)
