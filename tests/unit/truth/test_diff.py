"""diff: a run that falls to a seventh of its speed is a regression with its step, and noise is none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.cli.main import run as command
from tests.unit.truth._runs import DONE, write

Form = Callable[[Callable[[int], float], int], dict[str, list[str]]]


def paced(seconds: Callable[[int], float], seed: int) -> dict[str, list[str]]:
    rng = random.Random(seed)
    lines = [
        f"step {at} | loss {3 - at / 200:.4f} | step_time {seconds(at) * (1 + rng.gauss(0, 0.02)):.4f}"
        for at in range(1, 301)
    ]
    return {"train.log": [*lines, DONE]}


def clocked(seconds: Callable[[int], float], seed: int) -> dict[str, list[str]]:
    """A table whose only time is that since the start."""
    rng, at, rows = random.Random(seed), 0.0, ["step,loss,elapsed_s"]
    for step in range(1, 301):
        at += seconds(step) * (1 + rng.gauss(0, 0.02))
        rows.append(f"{step},{3 - step / 200:.4f},{at:.3f}")
    return {"metrics.csv": rows}


def traced(seconds: Callable[[int], float], seed: int) -> dict[str, list[str]]:
    """A profiler's trace: its steps, and a kernel in each."""
    rng, at, events = random.Random(seed), 1e6, list[dict[str, object]]()
    for step in range(1, 301):
        took = 1e6 * seconds(step) * (1 + rng.gauss(0, 0.02))
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 4, "tid": 4, "ts": at, "dur": took}
        args = {"device": 0, "stream": 7}
        kernel = {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + took / 9, "dur": took / 2}
        events += [{"ph": "X", **mark}, {"ph": "X", **kernel, "args": args}]
        at += took
    document = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}
    return {"rank0.pt.trace.json": [json.dumps(document)]}


@pytest.mark.parametrize("form", [paced, clocked, traced])
@pytest.mark.parametrize(("factor", "verdict", "code"), [(7.0, "regression", 1), (1.0, "no_change", 0)])
def test_a_fall_to_a_seventh_at_a_step_is_a_regression_with_that_step(
    *,
    form: Form,
    factor: float,
    verdict: str,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = write(tmp_path / "base", form(lambda _: 0.5, 1))
    cand = write(tmp_path / "cand", form(lambda at: 0.5 * (factor if at > 120 else 1), 2))
    assert command(["diff", str(base), str(cand), "--format", "json"]) == code
    said = capsys.readouterr().out
    found = json.loads(said)
    assert found["verdict"] == verdict
    if verdict == "regression":
        assert found["change"] == pytest.approx(1 / 7 - 1, abs=0.02)
        assert max(found["interval"]) < -0.8
    command(["diff", str(base), str(cand)])
    assert ("from step 121" in capsys.readouterr().out) is (verdict == "regression")
