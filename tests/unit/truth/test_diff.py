"""diff: a run that falls to a seventh of its speed is a regression with its step, and noise is none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.cli.main import run as command
from tests.unit.truth._runs import DONE, write


def paced(seconds: Callable[[int], float], seed: int) -> dict[str, list[str]]:
    rng = random.Random(seed)
    lines = [
        f"step {at} | loss {3 - at / 200:.4f} | step_time {seconds(at) * (1 + rng.gauss(0, 0.02)):.4f}"
        for at in range(1, 301)
    ]
    return {"train.log": [*lines, DONE]}


@pytest.mark.parametrize(("factor", "verdict", "code"), [(7.0, "regression", 1), (1.0, "no_change", 0)])
def test_a_fall_to_a_seventh_at_a_step_is_a_regression_with_that_step(
    factor: float, verdict: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = write(tmp_path / "base", paced(lambda _: 0.5, 1))
    cand = write(tmp_path / "cand", paced(lambda at: 0.5 * (factor if at > 120 else 1), 2))
    assert command(["diff", str(base), str(cand), "--format", "json"]) == code
    said = capsys.readouterr().out
    found = json.loads(said)
    assert found["verdict"] == verdict
    if verdict == "regression":
        assert found["change"] == pytest.approx(1 / 7 - 1, abs=0.02)
        assert max(found["interval"]) < -0.8
    command(["diff", str(base), str(cand)])
    assert ("from step 121" in capsys.readouterr().out) is (verdict == "regression")
