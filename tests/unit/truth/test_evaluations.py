"""Evaluations: result trees of one's own are read, and beside a baseline the setting that differs is the cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from forensics.api import open_run
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import judged, shape, write

WORSE = (Outcome.FAILED, Shape.BAD_EVAL)
TREES: Mapping[str, Any] = {
    "one score": {"accuracy": 0.61},
    "a list of tasks": [{"task": "arc", "acc": 0.61}, {"task": "boolq", "acc": 0.8}],
    "nested": {"results": {"arc": {"acc": 0.61, "acc_stderr": 0.01}}, "config": {"num_fewshot": 5}},
    "by split": {"test": {"f1": 0.61, "exact_match": 0.5}},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_result_tree_of_ones_own_is_read(tree: Any, tmp_path: Path) -> None:
    run = open_run(write(tmp_path, {"results.json": json.dumps(tree)}))
    assert 0.61 in run.evals.collect()["value"].to_list()


@pytest.mark.parametrize("tree", [{"accuracy_threshold": 0.61, "lr": 0.1}, {"vocab": {"acc": 3, "f1": 4}}])
def test_settings_that_only_name_a_score_are_no_results(tree: Any, tmp_path: Path) -> None:
    run = open_run(write(tmp_path, {"settings.json": json.dumps(tree)}))
    assert run.evals.collect().is_empty()


def result(accuracy: float, **settings: object) -> dict[str, str]:
    return {"results.json": json.dumps({"accuracy": accuracy, "n": 1000, **settings})}


def tokenizer(*, prefix: bool) -> dict[str, str]:
    return {
        "tokenizer.json": json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": prefix},
                "decoder": {"type": "ByteLevel"},
                "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2}, "merges": ["a b"]},
            }
        )
    }


def test_decoding_that_changed_is_the_cause_of_a_fall(tmp_path: Path) -> None:
    found = judged(tmp_path, result(0.15, temperature=1.0), result(0.64, temperature=0.0)).verdict
    assert (*shape(found), found.cause) == (*WORSE, "eval_settings_change")
    assert "temperature 0.0 → 1.0" in found.headline


def test_a_tokenizer_beside_the_results_is_compared(tmp_path: Path) -> None:
    other = judged(tmp_path / "other", result(0.15) | tokenizer(prefix=True), result(0.64) | tokenizer(prefix=False))
    same = judged(tmp_path / "same", result(0.15) | tokenizer(prefix=True), result(0.64) | tokenizer(prefix=True))
    assert (other.verdict.cause, same.verdict.cause) == ("tokenizer_mismatch", "cause_not_recorded")


def test_being_worse_is_never_given_as_the_cause(tmp_path: Path) -> None:
    found = judged(tmp_path, result(0.15, temperature=0.0), result(0.64, temperature=0.0)).verdict
    assert (*shape(found), found.cause) == (*WORSE, "cause_not_recorded")


@pytest.mark.parametrize("accuracy", [0.64, 0.63])
def test_a_difference_within_the_error_of_a_thousand_answers_is_no_fall(accuracy: float, tmp_path: Path) -> None:
    assert judged(tmp_path, result(accuracy), result(0.64)).verdict.outcome is Outcome.CANNOT_SAY
