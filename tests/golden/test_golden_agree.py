"""No two commands disagree on what happened, where it began, who caused it, and where to go on from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import runs  # noqa: E402 - the folder is no package

ANSWERS: dict[str, dict[str, Any]] = runs.kept(runs.ANSWERS)["runs"]


def disagreements(answers: dict[str, Any]) -> list[str]:
    """What the commands' answers about one run say against each other, in words."""
    triage, nan, hang = answers["triage"], answers.get("nan_origin"), answers.get("hang")
    found: list[str] = []
    lost = nan is not None and nan["kind"] != "none"
    if triage["shape"] == "nan" and triage["outcome"] == "failed" and not lost:
        found.append("triage says that training is not finite, nan-origin that it is")
    if lost and triage["outcome"] == "healthy":
        found.append("nan-origin says that training is not finite, triage that it is healthy")
    if nan is not None and lost and triage["shape"] == "nan":
        if triage["onset"][0] != nan["first_bad_step"]:
            found.append(f"NaN from step {triage['onset'][0]} on, or from step {nan['first_bad_step']} on")
        if triage["checkpoint"] != nan["last_clean_checkpoint"]:
            found.append(f"checkpoint {triage['checkpoint']} or {nan['last_clean_checkpoint']}")
    if triage["shape"] == "hang" and hang is None:
        found.append("triage says that the run hangs, hang that it does not")
    if hang is not None:
        keys = [key for key in ("culprits", "cause", "shape") if hang[key] != triage[key]]
        found += [f"{key}: {triage[key]} or {hang[key]}" for key in keys]
    return found


def test_the_commands_agree_on_every_golden_run() -> None:
    said = [(name, disagreements(answers)) for name, answers in ANSWERS.items()]
    assert [(name, found) for name, found in said if found] == []


def test_a_disagreement_is_noticed() -> None:
    nan = {"kind": "unknown", "first_bad_step": 7, "last_clean_checkpoint": None}
    triage = {"outcome": "failed", "shape": "nan", "onset": [8, None], "checkpoint": {"step": 5, "path": None}}
    assert len(disagreements({"triage": triage, "nan_origin": nan})) == 2
    assert len(disagreements({"triage": triage | {"shape": "hang"}})) == 1
    assert len(disagreements({"triage": triage | {"outcome": "healthy", "shape": None}, "nan_origin": nan})) == 1
    assert len(disagreements({"triage": triage})) == 1
