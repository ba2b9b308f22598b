"""`forensics restart` from files to text, documents and exit codes that a launcher's loop can follow."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from .conftest import Call

RUNS = Path(__file__).parents[2] / "fixtures/runs"
BLOWUP = RUNS / "nan-blowup-kempnerforge"
CODES = [
    ("stopped-time-limit", 0, "as_is"),
    ("nan-blowup-kempnerforge", 1, "after_change"),
    ("oom-then-hang-torchrun", 1, "after_change"),
    ("healthy-nanogpt", 1, None),
    ("unknown-prose", 3, "unknown"),
]
SCHEMA = json.loads((files("forensics.report") / "_schema/restart-1.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("run", "code", "decision"), CODES)
def test_a_loop_goes_on_with_exit_code_0_only(call: Call, run: str, code: int, decision: str | None) -> None:
    found = call("restart", RUNS / run, "-f", "json")
    jsonschema.validate(found.document, SCHEMA)
    assert (found.code, found.document["decision"]) == (code, decision)
    assert call("restart", RUNS / run).code == code
    assert call("restart", RUNS / run, "-f", "markdown").code == code
    assert call("restart", RUNS / run, "--exit-zero").code == 0


def test_the_text_has_the_reason_the_change_and_the_command_whole(call: Call) -> None:
    lines = call("restart", BLOWUP).out.splitlines()
    assert lines[0] == f"CHANGE FIRST  {BLOWUP}"
    assert [line.split()[0] for line in lines if line[:1].strip()][1:] == [
        "failure", "because", "change", "checkpoint", "command", "seen"
    ]  # fmt: skip
    command = "--checkpoint.load_path=checkpoints/demo/step_100 --train.max_grad_norm=1.0"
    assert f"command     {command}" in lines


def test_tries_and_a_start_without_a_checkpoint_are_said(call: Call) -> None:
    told = " ".join(call("restart", RUNS / "stopped-time-limit").out.split())
    assert "2 more attempts may fail without getting further" in told
    assert "no checkpoint was found, so it may begin anew" in told


def test_a_finished_run_gives_no_advice(call: Call) -> None:
    out = call("restart", RUNS / "healthy-nanogpt").out
    assert out.startswith("FINISHED  ")
    assert "because" not in out


def test_nan_origin_and_restart_and_triage_give_one_command(call: Call) -> None:
    told = call("triage", BLOWUP, "-f", "json").document["verdict"]["restart"]["command"]
    assert told == call("restart", BLOWUP, "-f", "json").document["command"]
    assert told == call("nan-origin", BLOWUP, "-f", "json").document["restart"]
