"""The last clean checkpoint: of a log that numbers epochs alone, and of a loss that rose until it was no number."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path

import pytest

from forensics.case.epochs import EpochScale
from tests.unit.truth._runs import judged

EACH = 500


def records(first_nan: int, digits: int) -> Iterator[str]:
    for at in range(1, first_nan + 20):
        loss = float("nan") if at >= first_nan else 3.0 - 0.002 * at
        yield str({"loss": loss, "grad_norm": 1.0 + 0.1 * (at % 2), "epoch": round(at / EACH, digits)})
        if at % 100 == 0:
            yield f"Saving model checkpoint to out/checkpoint-{at}"


def risen() -> Iterator[str]:
    noise = random.Random(5)
    for at in range(1, 341):
        loss = 2.4 + 2 * exp(-at / 60) if at < 150 else min(9.5, 2.5 + 0.2 * (at - 150))
        yield str({"loss": loss + noise.gauss(0, 0.02), "grad_norm": 1.0, "epoch": at / EACH})
        if at % 100 == 0:
            yield f"Saving model checkpoint to out/checkpoint-{at}"


def climbed(first_nan: int, rate: float, saves: Sequence[int], *, by_epoch: bool = False) -> Iterator[str]:
    """A loss that rises from step 251 on, by `rate` at first, until it is no number."""
    noise = random.Random(3)
    for at in range(1, first_nan + 20):
        loss = 2.4 + 4.6 * exp(-at / 60) + noise.gauss(0, 0.02) + rate * max(0, at - 250) ** 1.1
        loss = loss if at < first_nan else float("nan")
        yield str({"loss": loss, "epoch": at / EACH}) if by_epoch else f"step {at}/2000 loss {loss:.4f} lr 3e-4"
        if at in saves:
            yield f"Saving model checkpoint to out/checkpoint-{at}"


def state(last: int) -> str:
    rows = [{"epoch": at / EACH, "loss": 3.0 - 0.002 * at, "step": at} for at in range(10, last + 1, 10)]
    return json.dumps({"global_step": last, "epoch": last / EACH, "log_history": rows})


@pytest.mark.parametrize(
    ("first_nan", "digits", "clean"),
    [(311, 4, 300), (311, 2, 300), (301, 2, 200), (299, 4, 200), (304, 4, 300)],
)
def test_a_record_of_an_epoch_is_compared_by_the_steps_of_an_epoch(
    first_nan: int, digits: int, clean: int, tmp_path: Path
) -> None:
    files = {"train.log": records(first_nan, digits), "checkpoint-200/trainer_state.json": state(200)}
    verdict = judged(tmp_path, files).verdict
    assert verdict.shape == "nan"
    assert verdict.checkpoint is not None
    assert verdict.checkpoint.step == clean


def test_a_checkpoint_that_was_saved_behind_the_begin_of_a_rise_is_none_to_go_on_from(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"train.log": risen(), "checkpoint-200/trainer_state.json": state(200)}).verdict
    assert (verdict.shape, verdict.cause) == ("learning", "diverged")
    assert verdict.checkpoint is not None
    assert verdict.checkpoint.step == 100


@pytest.mark.parametrize("rate", [0.25, 0.02, 0.004])
@pytest.mark.parametrize("by_epoch", [False, True])
def test_a_checkpoint_that_was_saved_while_the_loss_rose_to_nan_is_not_clean(
    rate: float, *, by_epoch: bool, tmp_path: Path
) -> None:
    lines = climbed(311, rate, (200, 240, 270, 300), by_epoch=by_epoch)
    states = {"checkpoint-200/trainer_state.json": state(200)} if by_epoch else {}
    verdict = judged(tmp_path, {"train.log": lines, **states}).verdict
    assert verdict.shape == "nan"
    assert verdict.checkpoint is not None
    assert verdict.checkpoint.step == 240


def test_where_each_one_was_saved_while_the_loss_rose_none_is_clean(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"train.log": climbed(311, 0.02, (270, 300))}).verdict
    assert verdict.checkpoint is None
    assert verdict.restart is not None
    assert "saved after the loss began to rise at step 25" in verdict.restart.no_checkpoint


def test_a_loss_that_only_turned_nan_taints_no_checkpoint(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"train.log": climbed(311, 0.0, (200, 300))}).verdict
    assert verdict.checkpoint is not None
    assert verdict.checkpoint.step == 300


def test_without_a_length_of_the_epoch_nobody_knows_whether_a_checkpoint_is_clean(tmp_path: Path) -> None:
    verdict = judged(tmp_path, {"train.log": records(311, 4)}).verdict
    assert verdict.shape == "nan"
    assert verdict.checkpoint is None
    assert verdict.restart is not None
    assert verdict.restart.no_checkpoint.startswith("nobody knows whether the one of step 300 is clean")


@pytest.mark.parametrize(("rate", "cause"), [(0.022, "optimization_blowup"), (0.018, "unknown")])
def test_a_loss_that_rose_by_half_before_it_was_no_number_blew_up(rate: float, cause: str, tmp_path: Path) -> None:
    report = judged(tmp_path, {"train.log": climbed(311, rate, ())})
    assert report.verdict.cause == cause
    assert ("usual value" in report.verdict.headline) is (cause == "optimization_blowup")


@pytest.mark.parametrize(("epoch", "first"), [(0.6, 298), (0.61, 302), (0.001, 0)])
def test_a_fraction_of_two_digits_may_mean_a_step_before_it(epoch: float, first: int) -> None:
    assert EpochScale(EACH).first_of(epoch) == first
