"""What a run beside a baseline tells of the two: the commit between them, and devices that do not help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]


def written(place: Path, last: float, **config: object) -> Path:
    place.mkdir()
    losses = [last + (3 - last) * 0.97**step + 0.01 * (step * 7 % 5) for step in range(200)]
    rows = "".join(json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in enumerate(losses, 1))
    (place / "metrics.jsonl").write_text(rows, encoding="utf-8")
    (place / "config.json").write_text(json.dumps({"lr": 2e-4, **config}), encoding="utf-8")
    return place


@pytest.mark.parametrize(("devices", "last", "told"), [(8, 1.6, True), (8, 1.0, False), (1, 1.6, False)])
def test_more_devices_that_end_at_a_higher_loss_than_the_baseline_are_told(
    devices: int, last: float, told: bool, tmp_path: Path, call: Call
) -> None:
    good, bad = written(tmp_path / "good", 1.0, world_size=1), written(tmp_path / "bad", last, world_size=devices)
    said = call("triage", bad, "--baseline", good).err
    assert ("gradients may not be averaged" in said) is told


def test_the_commit_between_a_failed_run_and_its_baseline_is_bisected(tmp_path: Path, call: Call) -> None:
    good, bad = (
        written(tmp_path / name, 1.0, git_commit=sha) for name, sha in (("good", "3f2a9c1"), ("bad", "9b1e77d"))
    )
    with (bad / "metrics.jsonl").open("a", encoding="utf-8") as rows:
        rows.writelines(json.dumps({"step": step, "loss": float("nan")}) + "\n" for step in range(201, 221))
    assert "git bisect start 9b1e77d 3f2a9c1" in call("triage", bad, "--baseline", good).err
    assert "git bisect" not in call("triage", good, "--baseline", good).err
