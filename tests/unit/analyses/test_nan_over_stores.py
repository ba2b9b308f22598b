"""Whether training got over a NaN is asked of every store with its losses, not only of the file that tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Outcome, Shape

LOG = [
    "training for 112 steps",
    "saved checkpoint checkpoints/step_40",
    *(f"step {n}: grad norm is nan, skipping update" for n in (45, 46, 47)),
    "saved checkpoint checkpoints/step_60",
]


def put(place: Path, last: int, *, is_done: bool) -> None:
    rows = [f"{n},{3 - n / 100:.4f},{'nan' if n in {45, 46, 47} else 0.9}" for n in range(1, last + 1)]
    (place / "metrics.csv").write_text("\n".join(["step,loss,grad_norm", *rows]) + "\n", encoding="utf-8")
    said = [*LOG, *(["training finished after 112 steps"] if is_done else [])]
    (place / "train.out").write_text("\n".join(said) + "\n", encoding="utf-8")


def test_losses_of_another_store_show_that_training_got_over_a_nan(tmp_path: Path) -> None:
    put(tmp_path, 112, is_done=True)
    assert triage(tmp_path).verdict.outcome in {Outcome.HEALTHY, Outcome.SUSPECT}


@pytest.mark.parametrize("last", [47, 48])
def test_a_nan_behind_which_no_store_goes_on_is_the_failure(last: int, tmp_path: Path) -> None:
    put(tmp_path, last, is_done=False)
    assert triage(tmp_path).verdict.shape is Shape.NAN


def test_a_last_word_without_a_step_does_not_hide_the_epoch_that_another_store_counts(tmp_path: Path) -> None:
    rows = [f'{{"epoch": {n}, "loss": {float("nan") if n > 10 else 1 / (n + 1):.4f}}}' for n in range(20)]
    (tmp_path / "epochs.jsonl").write_text("\n".join(rows).replace("nan", "NaN") + "\n", encoding="utf-8")
    (tmp_path / "train.log").write_text("Done, final loss nan\n", encoding="utf-8")
    assert triage(tmp_path).verdict.onset.step == 11
