"""Health without proof: a run is healthy by its end, its plan or its exit code, never by silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, falling, judged, said, shape

COUNTED = "[Step {{at}}/{plan}] loss {{loss:.4f}}"


@pytest.mark.parametrize(
    ("last", "plan", "outcome", "reach"),
    [
        (55, 100, Outcome.CANNOT_SAY, "step 55 of 100"),
        (100, 100, Outcome.HEALTHY, "step 100 of 100"),
    ],
)
def test_a_counter_that_stops_before_its_plan_proves_nothing(
    last: int, plan: int, outcome: Outcome, reach: str, tmp_path: Path
) -> None:
    verdict = said(tmp_path, falling(1, last, COUNTED.format(plan=plan)))
    assert (verdict.outcome, reach in verdict.headline) == (outcome, True)


@pytest.mark.parametrize(("last", "outcome"), [(40, Outcome.CANNOT_SAY), (300, Outcome.HEALTHY)])
def test_the_total_that_a_trainer_announces_is_the_plan(last: int, outcome: Outcome, tmp_path: Path) -> None:
    assert said(tmp_path, ["  Total optimization steps = 300", *falling(1, last)]).outcome is outcome


@pytest.mark.parametrize(
    ("most", "last", "outcome"),
    [(-1, 99, Outcome.CANNOT_SAY), (23_260, 99, Outcome.CANNOT_SAY), (99, 99, Outcome.HEALTHY)],
)
def test_max_steps_of_minus_one_is_no_plan_that_is_reached(
    most: int, last: int, outcome: Outcome, tmp_path: Path
) -> None:
    found = judged(tmp_path, {"config.json": json.dumps({"max_steps": most}), "train.log": falling(1, last)})
    assert found.verdict.outcome is outcome


def test_a_planned_run_that_falls_silent_is_no_health_and_one_that_is_killed_is_a_failure(tmp_path: Path) -> None:
    lines = ["max_steps: 400", *falling(1, 165)]
    silent, killed = said(tmp_path / "silent", lines), said(tmp_path / "killed", [*lines, "Killed"])
    assert (silent.outcome, "step 165 of 400" in silent.headline) == (Outcome.CANNOT_SAY, True)
    assert (*shape(killed), killed.onset.step) == (Outcome.FAILED, Shape.CRASH, 165)


@pytest.mark.parametrize(("end", "outcome"), [(DONE, Outcome.HEALTHY), ("reading the data", Outcome.CANNOT_SAY)])
def test_an_end_marker_proves_health_and_any_other_last_line_does_not(
    end: str, outcome: Outcome, tmp_path: Path
) -> None:
    assert said(tmp_path, [*falling(1, 60), end]).outcome is outcome
