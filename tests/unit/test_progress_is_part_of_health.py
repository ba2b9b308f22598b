"""A run whose loss never moved, and that says nothing of its end, is not called healthy."""

from __future__ import annotations

from pathlib import Path

from forensics import triage
from forensics.model import Outcome


def log(folder: Path, losses: list[float], *more: str) -> Path:
    lines = [f"step: {i} loss: {loss:.4f} accuracy: 0.5" for i, loss in enumerate(losses)]
    (folder / "train.log").write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    return folder


def test_a_loss_that_stands_still_is_no_health(tmp_path: Path) -> None:
    verdict = triage(log(tmp_path, [4.6052 + 0.0002 * (i % 5) for i in range(40)])).verdict
    assert verdict.outcome is Outcome.CANNOT_SAY
    assert "no progress" in verdict.headline


def test_a_loss_that_falls_is(tmp_path: Path) -> None:
    assert triage(log(tmp_path, [4.6 * 0.97**i for i in range(40)])).verdict.outcome is Outcome.HEALTHY


def test_a_run_that_says_that_it_finished_is_believed(tmp_path: Path) -> None:
    run = log(tmp_path, [4.6052 + 0.0002 * (i % 5) for i in range(40)], "training complete")
    assert triage(run).verdict.outcome is Outcome.HEALTHY


def test_a_stop_that_reports_failure_is_no_end_in_success(tmp_path: Path) -> None:
    stop = ':::MLLOG {"namespace": "", "time_ms": 1770000000000, "key": "run_stop", "value": {"success": false}}'
    verdict = triage(log(tmp_path, [4.6 * 0.97**i for i in range(40)], stop)).verdict
    assert "no end marker" in verdict.headline
