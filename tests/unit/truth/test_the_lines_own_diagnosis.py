"""The line's own diagnosis: a fatal line that the catalogue knows decides, with its cause and its step."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, TRACEBACK, falling, said, shape

NAN = (Outcome.FAILED, Shape.NAN)
AT_MINIMUM = "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."


@pytest.mark.parametrize("before", [(), TRACEBACK])
def test_one_fatal_line_of_the_loss_scale_is_cause_and_fix(before: tuple[str, ...], tmp_path: Path) -> None:
    verdict = said(tmp_path, [*falling(1, 60), *before, AT_MINIMUM])
    assert (*shape(verdict), verdict.cause, verdict.onset.step) == (*NAN, "loss_scale_collapse", 61)


def test_one_lowering_of_the_loss_scale_is_none(tmp_path: Path) -> None:
    lowered = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"
    verdict = said(tmp_path, [*falling(1, 60), lowered, *falling(61, 90), DONE])
    assert verdict.outcome is Outcome.HEALTHY


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: NaN at iteration=2137",
        "FloatingPointError: Loss became infinite or NaN at iteration=2137!",
        "ValueError: NaN loss detected at step 2137",
        "NaN encountered in step 2137, giving up",
    ],
)
@pytest.mark.parametrize("records", [0, 1, 14])
def test_a_line_that_names_the_step_of_a_nan_dates_it_and_it_is_not_from_the_start(
    line: str, records: int, tmp_path: Path
) -> None:
    before = [f"iteration {at} loss {3 - at / 1000:.4f}" for at in range(2130 - 10 * (records - 1), 2131, 10)]
    verdict = said(tmp_path, [*(before if records else ["loading the model"]), line])
    assert (*shape(verdict), verdict.onset.step) == (*NAN, 2137)
    assert verdict.cause != "from_start"


def test_a_run_whose_every_loss_is_nan_is_from_the_start(tmp_path: Path) -> None:
    verdict = said(tmp_path, [f"iteration {at} loss nan" for at in range(1, 20)])
    assert (*shape(verdict), verdict.cause) == (*NAN, "from_start")


def test_a_step_with_a_nan_that_was_skipped_is_no_failure(tmp_path: Path) -> None:
    lines = [*falling(1, 40), "NaN detected at step 41, skipping the batch", *falling(42, 100), DONE]
    assert said(tmp_path, lines).outcome is Outcome.HEALTHY


@pytest.mark.parametrize(
    "line", ["number of nan iterations: 0", "no NaN in step 2137", "checked for NaN at every step"]
)
def test_a_line_that_only_speaks_of_nan_is_no_detector(line: str, tmp_path: Path) -> None:
    assert said(tmp_path, [*falling(1, 60), line, DONE]).outcome is Outcome.HEALTHY
