"""What is told of excerpts that hold a handful of records, and what is not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.model import Outcome, Shape
from forensics.rules.bad_eval.zero import score_zero
from forensics.store.run import run_of
from tests.unit.truth._runs import said, shape

COCO = " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = {ap}"
SKIPPED = "Warning: loss is NaN, skipping this step"
BAR = "Steps:   2%|2         | {n}/90000 [31:29<30:59:03,  1.38s/it, loss={loss}, lr=1e-5]"


def first(lines: list[str], tmp_path: Path) -> str:
    return said(tmp_path, lines).actions[0].text


def test_a_table_of_coco_that_scores_zero_is_suspect_and_one_that_scores_more_is_not(tmp_path: Path) -> None:
    verdict = said(tmp_path / "zero", [COCO.format(ap="0.000")])
    assert (*shape(verdict), verdict.cause) == (Outcome.SUSPECT, Shape.BAD_EVAL, "score_zero")
    assert said(tmp_path / "more", [COCO.format(ap="0.000"), COCO.format(ap="0.012")]).cause == ""


@pytest.mark.parametrize(
    ("records", "evaluations", "is_told"), [(5, 3, True), (4, 3, False), (5, 2, False), (0, 5, True)]
)
def test_three_evaluations_of_zero_count_beside_five_records_of_training(
    records: int, evaluations: int, *, is_told: bool
) -> None:
    told = [("loss", 3.0 - 0.1 * at, at) for at in range(records)] + [("val/acc", 0.0, at) for at in range(evaluations)]
    rows = pl.DataFrame(told, schema=["name", "value", "step"], orient="row").with_columns(
        raw_name=pl.col("name"), source=pl.lit("train.log"), seq=pl.int_range(pl.len()), value_class=pl.lit("finite")
    )
    assert bool([*score_zero(run_of("made", {"metrics": rows}))]) is is_told


def test_a_log_that_begins_with_a_lost_number_is_one_attempt_however_often_it_says_so(tmp_path: Path) -> None:
    lines = [line for n in range(1299, 1305) for line in (SKIPPED, SKIPPED, BAR.format(n=n, loss="nan"))]
    verdict = said(tmp_path, lines)
    assert (*shape(verdict), verdict.onset.step) == (Outcome.FAILED, Shape.NAN, 1299)


def test_a_first_loss_that_is_a_number_leaves_the_updates_as_the_cause(tmp_path: Path) -> None:
    lines = [f"step {n}: loss {loss}" for n, loss in ((0, 0.693), (50, "nan"), (100, "nan"), (150, "nan"))]
    verdict = said(tmp_path, lines)
    assert verdict.cause == "from_start"
    assert verdict.actions[0].text.startswith("Lower the learning rate ten to a hundred times")


def test_numbers_that_were_never_finite_are_looked_for_in_the_first_batch(tmp_path: Path) -> None:
    lines = [f"step {n}: loss nan" for n in range(0, 200, 50)]
    assert said(tmp_path, lines).cause == "from_start"
    assert first(lines, tmp_path / "again").startswith("Run the first batch in fp32")


@pytest.mark.parametrize(("name", "begins"), [("ctc_loss", "Drop or split samples"), ("mse_loss", "Run again with")])
def test_the_lengths_are_asked_for_where_a_loss_of_ctc_is_lost(name: str, begins: str, tmp_path: Path) -> None:
    lines = [f"step {n}: {name} {'nan' if n > 60 else 3 - n / 50}" for n in range(10, 110, 10)]
    assert first(lines, tmp_path).startswith(begins)


def test_a_summary_of_wandb_that_ends_in_nan_is_no_nan_from_the_start(tmp_path: Path) -> None:
    lines = [
        "wandb: Run summary:",
        "wandb: batch_id 127",
        "wandb:    epoch 0",
        "wandb:     loss nan",
        "wandb:       lr 0.0",
    ]
    verdict = said(tmp_path, lines)
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.NAN, "unknown")


HIDDEN = "{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 5e-05, 'epoch': 0.{n}}}"


def test_a_hidden_nan_asks_for_the_labels_at_once_and_for_the_rate_later(tmp_path: Path) -> None:
    hidden = [HIDDEN.format(loss=0.0, norm="nan", n=n) for n in range(20, 30)]
    course = [HIDDEN.format(loss=2.0 - n / 50, norm=0.5 + n % 3 / 10, n=n) for n in range(10, 20)]
    assert first(hidden, tmp_path / "at once").startswith("Look whether the batch")
    assert first([*course, *hidden], tmp_path / "later").startswith("Start again with a tenth of the learning rate")
