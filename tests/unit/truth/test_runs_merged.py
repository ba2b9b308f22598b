"""Runs merged: two runs of one place have two verdicts, and stores of one run have one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import triage
from forensics.cli.main import run as command
from forensics.errors import UsageError
from tests.unit.truth._runs import DONE, falling, write

LOST = [*falling(1, 50), *(f"step {at} | loss: nan" for at in range(51, 80))]


def two(place: Path, first: str, second: str) -> Path:
    return write(place, {first: [*falling(1, 100), DONE], second: LOST})


@pytest.mark.parametrize(("first", "second"), [("a/train.log", "b/train.log"), ("lr_1e-3/out.log", "lr_3e-3/out.log")])
def test_a_parent_of_two_runs_has_a_verdict_for_each(
    first: str, second: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = two(tmp_path, first, second)
    with pytest.raises(UsageError, match="2 runs"):
        triage(place)
    command(["triage", str(place), "--format", "json", "--exit-zero"])
    told = json.loads(capsys.readouterr().out)["runs"]
    assert sorted((one["verdict"]["outcome"], one["verdict"]["shape"]) for one in told) == [
        ("failed", "nan"),
        ("healthy", None),
    ]


def test_two_stores_of_one_run_have_one_verdict(tmp_path: Path) -> None:
    table = ["step,loss", *(f"{at},{3 - at / 100:.4f}" if at <= 50 else f"{at},nan" for at in range(1, 80))]
    place = write(tmp_path, {"logs/train.log": LOST, "logs/metrics.csv": table})
    assert triage(place).verdict.onset.step == 51


def test_a_run_that_goes_on_in_a_second_folder_is_one_run(tmp_path: Path) -> None:
    again = ["Resuming from step 100", *falling(101, 200), DONE]
    place = write(tmp_path, {"attempt_0/train.log": falling(1, 100), "attempt_1/train.log": again})
    assert triage(place).verdict.onset.step is None
