"""The time until the last step tells how long a step takes, where it is that of the whole run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.api import triage
from forensics.model import Outcome, Report

PLAN, EVERY = 9000, 75


def clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


def judged(folder: Path, left_s: Callable[[int], float], form: str = "it {n}/9000 loss {v:.4f} eta {eta}") -> Report:
    lines = [form.format(n=n, v=2000 / (n + 900) + n % 7 / 90, eta=clock(left_s(n))) for n in range(0, PLAN + 1, EVERY)]
    (folder / "train.log").write_text("\n".join([*lines, "training finished"]) + "\n")
    return triage(folder)


@pytest.mark.parametrize("slow_s", [0.42, 2.1])
@pytest.mark.parametrize("form", ["it {n}/9000 loss {v:.4f} eta {eta}", "[{n}/9000] loss: {v:.4f} | time left: {eta}"])
def test_a_time_left_that_leaps_says_that_steps_became_slower(tmp_path: Path, form: str, slow_s: float) -> None:
    verdict = judged(tmp_path, lambda n: (PLAN - n) * (0.42 if n < 4500 else slow_s), form).verdict
    slow = verdict.shape is not None and verdict.shape.value == "slowdown"
    assert (slow, verdict.outcome is Outcome.HEALTHY) == (slow_s > 1, slow_s < 1)
    assert not slow or abs((verdict.onset.step or 0) - 4500) <= 2 * EVERY


@pytest.mark.parametrize("epochs", [2, 3, 10])
def test_the_time_left_of_each_epoch_is_no_clock_of_the_run(tmp_path: Path, epochs: int) -> None:
    size = PLAN // epochs
    verdict = judged(tmp_path, lambda n: (size - n % size) * 0.8).verdict
    assert verdict.outcome is Outcome.HEALTHY
    assert "no time of a step" in verdict.headline
