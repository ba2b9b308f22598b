"""`--history` and `forensics history` from files to text, documents and exit codes."""

from __future__ import annotations

import json
import os
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema

from .conftest import Call

RUNS = Path(__file__).parents[2] / "fixtures/runs"
BAD_SAMPLE = RUNS / "nan-bad-sample-torchtitan"
SCHEMA = json.loads((files("forensics.report") / "_schema/history-1.schema.json").read_text(encoding="utf-8"))


def test_the_second_run_with_a_failure_says_that_it_was_there_before(call: Call, tmp_path: Path) -> None:
    second, past = tmp_path / "second", tmp_path / "past"
    shutil.copytree(BAD_SAMPLE, second)
    for path in second.rglob("*.log"):
        os.utime(path, ns=(1, 1))  # a copy with its times is the same run under another name
    first = call("triage", BAD_SAMPLE, "--history", past)
    assert "the same failure" not in first.out
    told = call("triage", second, "--history", past).out
    assert "before      the same failure ended 1 other run on 2026-05-01" in told
    again = call("triage", second, "--history", past, "-f", "json").document["verdict"]["seen_before"]
    assert (again["count"], again["first"][:10], again["last"][:10]) == (1, "2026-05-01", "2026-05-01")
    assert call("triage", second, "-f", "json").document["verdict"]["seen_before"] is None


def test_a_history_is_shown_by_failure(call: Call, tmp_path: Path) -> None:
    past = tmp_path / "past"
    call("triage", BAD_SAMPLE, RUNS / "healthy-nanogpt", "--history", past)
    found = call("history", past, "-f", "json")
    jsonschema.validate(found.document, SCHEMA)
    assert found.document["outcomes"] == {"failed": 1, "healthy": 1}
    assert [failure["cause"] for failure in found.document["failures"]] == ["data_or_numerics"]
    text = call("history", past).out
    assert text.startswith(f"2 runs in {past}: ")
    assert f"  {BAD_SAMPLE}  step 97" in text
    assert "| `data_or_numerics` | `1` |" in call("history", past, "-f", "markdown").out


def test_a_folder_that_is_not_there_is_no_history(call: Call, tmp_path: Path) -> None:
    found = call("history", tmp_path / "none")
    assert found.code == 2
    assert "forensics triage RUN --history DIR" in found.err


def test_a_damaged_history_is_used_as_far_as_it_is_whole_and_said(call: Call, tmp_path: Path) -> None:
    past = tmp_path / "past"
    call("triage", BAD_SAMPLE, "--history", past)
    file = next(past.iterdir())
    file.write_bytes(file.read_bytes()[:-5])
    found = call("triage", RUNS / "healthy-nanogpt", "--history", past)
    assert "1 of its files or lines were not used" in found.err
    assert call("history", past, "-f", "json").document["unusable"] == 1
