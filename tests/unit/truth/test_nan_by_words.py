"""A NaN of which only words tell: where it began, and what the program itself names."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, said, shape

NAN = (Outcome.FAILED, Shape.NAN)
GAVE_UP = "RuntimeError: Loss was NaN for 3 times in a row. Stopped training."


@pytest.mark.parametrize(
    ("above", "cause"),
    [((), "unknown"), (("reading the settings", "seed 7", "12 samples", "building the model"), "from_start")],
    ids=["an excerpt that begins with it", "a log that shows its beginning"],
)
def test_a_detector_that_opens_its_log_tells_of_no_bad_start(
    tmp_path: Path, above: tuple[str, ...], cause: str
) -> None:
    verdict = said(tmp_path, [*above, *TRACEBACK, GAVE_UP])
    assert (*shape(verdict), verdict.cause) == (*NAN, cause)


def test_one_loss_without_a_step_that_opens_its_log_tells_of_no_bad_start(tmp_path: Path) -> None:
    assert said(tmp_path, ["left loss: nan | total loss: nan"]).cause == "unknown"


@pytest.mark.parametrize(
    ("where", "cause"),
    [("grad norm in bucket #0 in backward pass", "gradient_nonfinite"), ("forward loss calculation", "unknown")],
)
def test_a_gradient_that_the_program_names_is_the_cause_where_nothing_else_tells_one(
    tmp_path: Path, where: str, cause: str
) -> None:
    raised = f"AssertionError: Rank 3: found NaN in local {where}. Device: 3"
    verdict = said(tmp_path, [*TRACEBACK, raised])
    assert (*shape(verdict), verdict.cause) == (*NAN, cause)


def test_the_learning_rate_is_the_first_thing_to_try_where_nothing_tells_what_came_before(tmp_path: Path) -> None:
    verdict = said(tmp_path, [*TRACEBACK, "FloatingPointError: Loss became infinite or NaN at iteration=270!"])
    assert verdict.cause == "unknown"
    assert verdict.actions[0].text.startswith("Run again with a tenth of the learning rate")
