"""An evaluation loss that is no number beside a finite training loss is a fault of evaluation, and is said so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forensics.model import Outcome, Report, Severity, Shape
from forensics.pipeline import ingest_bytes, report_of


def run_of(bad: Callable[[int], bool], *, names: tuple[str, ...] = ("eval_loss",), lost_from: int = 1000) -> Report:
    lines: list[str] = []
    for step in range(1, 400):
        loss = "nan" if step >= lost_from else f"{1 + 2 / step**0.5:.4f}"
        lines.append(f"step {step} | loss {loss} | grad_norm {0.7 + 0.01 * (step % 9):.3f}")
        if step % 50 == 0:
            value = "nan" if bad(step) else f"{1.1 + 2 / step**0.5:.4f}"
            lines += [f"step {step} | {name} {value}" for name in names]
    return report_of(ingest_bytes("train.log", ("\n".join([*lines, "Training finished."]) + "\n").encode()))


def test_never_a_number_is_the_evaluation_set_its_labels_or_its_precision() -> None:
    report = run_of(lambda _: True)
    verdict = report.verdict
    assert (verdict.outcome, verdict.shape, verdict.cause) == (Outcome.FAILED, Shape.BAD_EVAL, "eval_loss_nan")
    assert verdict.onset.step == 50
    likely = " ".join(next(f for f in report.findings if f.rule == "EVL027").likely)
    assert all(word in likely for word in ("empty", "masked", "fp16"))


def test_no_number_after_finite_ones_names_the_last_good_evaluation() -> None:
    verdict = run_of(lambda step: step >= 200).verdict
    assert (verdict.shape, verdict.onset.step, verdict.onset.step_lo) == (Shape.BAD_EVAL, 200, 150)


def test_no_number_once_is_a_warning() -> None:
    report = run_of(lambda step: step == 200)
    assert report.verdict.outcome is Outcome.SUSPECT
    assert [f.severity for f in report.findings if f.rule == "EVL027"] == [Severity.WARNING]


def test_how_often_an_evaluation_gave_no_number_is_said_of_one_and_of_many() -> None:
    once, twice, thrice = (
        next(f.title for f in run_of(lambda step, n=n: 200 <= step < 200 + 50 * n).findings if f.rule == "EVL027")
        for n in (1, 2, 3)
    )
    assert "NaN at step 200, while" in once
    assert "NaN at step 200 and once more, while" in twice
    assert "NaN at step 200 and 2 times more, while" in thrice


def test_a_training_loss_that_is_lost_too_is_nan_of_training() -> None:
    report = run_of(lambda step: step >= 200, lost_from=190)
    assert report.verdict.shape is Shape.NAN
    assert not [f for f in report.findings if f.rule == "EVL027"]


@pytest.mark.parametrize("bad", [False, True], ids=["finite", "nan"])
def test_the_rows_of_a_trainer_that_prints_dictionaries_are_read_alike(*, bad: bool) -> None:
    lines: list[str] = []
    for step in range(10, 500, 10):
        lines.append(str({"loss": round(1 + 2 / step**0.5, 4), "learning_rate": 3e-4, "epoch": step / 100}))
        if step % 100 == 0:
            value = float("nan") if bad else 1.5 - step / 1000
            lines.append(str({"eval_loss": value, "eval_runtime": 3.25, "epoch": step / 100}))
    lines.append(str({"train_runtime": 81.5, "train_loss": 1.25, "epoch": 4.9}))
    verdict = report_of(ingest_bytes("train.log", ("\n".join(lines) + "\n").encode())).verdict
    assert verdict.shape is (Shape.BAD_EVAL if bad else None)


@pytest.mark.parametrize(("first", "evaluations", "severity"), [(1, 12, "info"), (1, 11, "info"), (1, 10, "warning")])
def test_no_number_in_the_first_evaluation_alone_is_of_a_model_that_knew_nothing(
    first: int, evaluations: int, severity: str
) -> None:
    lines = [
        f"Epoch {n}/{evaluations} - loss: {2 / n:.4f} - val_loss: {'nan' if n == first else f'{0.1 + 2.1 / n:.4f}'}"
        for n in range(1, evaluations + 1)
    ]
    report = report_of(ingest_bytes("train.log", ("\n".join([*lines, "Training finished."]) + "\n").encode()))
    assert [f.severity.value for f in report.findings if f.rule == "EVL027"] == [severity]
