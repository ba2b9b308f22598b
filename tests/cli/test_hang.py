"""`forensics hang` from files to text, documents and exit codes."""

from __future__ import annotations

import io
import json
import shutil
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from .conftest import Call

FIXTURES = Path(__file__).parents[2] / "fixtures"
DEAD_RANK = FIXTURES / "runs/oom-then-hang-torchrun"
HANG = FIXTURES / "flight_recorder/ok-gloo"
UNDECIDED = FIXTURES / "flight_recorder/ok-nccl"
HEALTHY = FIXTURES / "runs/healthy-nanogpt"
NO_HANG = FIXTURES / "runs/crash-key-error"
PROSE = FIXTURES / "runs/unknown-prose"
CODES = [(DEAD_RANK, 1), (HANG, 1), (UNDECIDED, 1), (HEALTHY, 0), (NO_HANG, 0), (PROSE, 3)]
pytestmark = pytest.mark.usefixtures("read_once")
SCHEMA = json.loads((files("forensics.report") / "_schema/hang-1.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("run", "code"), CODES, ids=lambda v: v.name if isinstance(v, Path) else str(v))
@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_exit_code_is_that_of_the_answer_in_every_format(call: Call, run: Path, code: int, form: str) -> None:
    done = call("hang", run, "-f", form)
    assert (done.code, done.err) == (code, "")
    assert call("hang", run, "-f", form, "--exit-zero").code == 0


@pytest.mark.parametrize(("run", "code"), CODES, ids=lambda v: v.name if isinstance(v, Path) else str(v))
def test_the_document_is_what_its_schema_says(call: Call, run: Path, code: int) -> None:
    found = call("hang", run, "--format", "json").document
    jsonschema.validate(found, SCHEMA)
    assert found["hang"] is (code == 1)
    assert found["run"] == str(run)
    assert found["culprits"] == [] if code != 1 else found["cause"]


def test_the_rank_that_died_is_named_and_not_those_that_complain(call: Call) -> None:
    found = call("hang", DEAD_RANK, "-f", "json").document
    assert (found["shape"], found["culprits"], found["cause"]) == ("oom", [3], "gpu_out_of_memory")
    assert {state["rank"] for state in found["per_rank"]} == {0, 1, 2, 3}
    assert any("attempt_0/3/stderr.log" in evidence["source"] for evidence in found["evidence"])


def test_a_rank_that_never_came_is_named_by_the_dump_of_another(call: Call) -> None:
    found = call("hang", HANG, "-f", "json").document
    assert (found["shape"], found["culprits"], found["cause"]) == ("hang", [0], "never_entered")
    assert found["waits"][0]["waiting"] == [1]
    assert 0 in found["waits"][0]["awaited"]


def test_text_names_the_answer_first_and_the_account_last(call: Call) -> None:
    lines = call("hang", DEAD_RANK).out.splitlines()
    assert lines[0].startswith("DEAD RANK  ")
    assert next(line for line in lines if line.startswith("culprits")).split()[1:3] == ["rank", "3"]
    assert lines[-1].startswith("seen ")
    assert len(call("hang", DEAD_RANK, "--verbose").out.splitlines()) >= len(lines)
    assert call("hang", HEALTHY).out.startswith("NO HANG  ")


def test_markdown_is_a_heading_and_two_tables(call: Call) -> None:
    page = call("hang", DEAD_RANK, "-f", "markdown").out
    assert page.startswith("## Hang: dead rank\n\n| | |\n|---|---|\n| run | `")
    assert "\n| culprits | `rank 3" in page
    assert "\n| ranks | state |\n|---|---|\n" in page


def test_a_log_on_standard_input_is_read(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    log = next(DEAD_RANK.rglob("attempt_0/0/stderr.log")).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(log)))
    done = call("hang", "-", "-f", "json")
    assert done.document["run"] == "stdin"
    assert [f["source"] for f in done.document["coverage"]["files"]] == ["stdin"]
    assert done.document["coverage"]["files"][0]["read_bytes"] == len(log)


def test_strict_tells_of_input_that_was_lost_whatever_else_was_found(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(HANG, run)
    assert call("hang", HANG, "--strict").code == 1
    shutil.copytree(FIXTURES / "flight_recorder/broken-cut-json", run, dirs_exist_ok=True)
    assert call("hang", run).code == 1
    assert call("hang", run, "--strict").code == 4
    assert call("hang", run, "--strict", "--exit-zero").code == 0
    assert call("hang", FIXTURES / "flight_recorder/broken-cut").code == 3
    assert call("hang", FIXTURES / "flight_recorder/broken-cut", "--strict").code == 4


def test_the_tables_are_kept_where_that_was_asked(call: Call, tmp_path: Path) -> None:
    first = call("hang", DEAD_RANK, "--store", tmp_path / "store")
    assert any((tmp_path / "store").rglob("*.parquet"))
    assert call("hang", DEAD_RANK, "--store", tmp_path / "store").out == first.out == call("hang", DEAD_RANK).out


def test_what_cannot_be_read_is_a_usage_error(call: Call, tmp_path: Path) -> None:
    done = call("hang", tmp_path / "nowhere")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: no such file or directory")
    assert call("hang", HEALTHY, "-f", "html").code == 2
