"""Where results go, how they look, and what stays out of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli._options import wants_color

from .conftest import Call


def test_the_verdict_names_the_line_and_fits_a_screen(call: Call, nan_run: Path) -> None:
    done = call("triage", nan_run)
    assert done.err == ""
    assert "metrics.jsonl:51" in done.out
    assert len(done.out.splitlines()) <= 25


def test_json_has_the_fields_of_the_contract(call: Call, nan_run: Path) -> None:
    found = call("triage", nan_run, "--format", "json").document
    assert found["schema"] == "forensics.report/1"
    assert (found["verdict"]["outcome"], found["verdict"]["shape"]) == ("failed", "nan")
    assert found["verdict"]["onset"]["step"] == 51
    assert found["coverage"]["files"][0]["source"] == "metrics.jsonl"


def test_the_same_run_gives_the_same_bytes(call: Call, nan_run: Path) -> None:
    assert call("triage", nan_run, "-f", "json").out == call("triage", nan_run, "-f", "json").out


def test_several_runs_give_one_document_or_one_table(call: Call, nan_run: Path, good_run: Path) -> None:
    found = call("triage", nan_run, good_run, "--format", "json").document
    assert [run["verdict"]["outcome"] for run in found["runs"]] == ["failed", "healthy"]
    assert "1 run" in call("triage", nan_run, good_run).out
    assert call("triage", nan_run, good_run, "--format", "markdown").out.startswith("## 2 runs: 1 failed, 1 healthy")


def test_a_file_is_written_whole_and_not_over_another(call: Call, nan_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "verdict.json"
    done = call("triage", nan_run, "--format", "json", "-o", out)
    assert (done.code, done.out, done.err) == (1, "", f"Wrote {out}\n")
    assert json.loads(out.read_text(encoding="utf-8"))["schema"] == "forensics.report/1"
    refused = call("triage", nan_run, "-o", out)
    assert refused.code == 2
    assert "--force" in refused.err
    assert call("triage", nan_run, "-o", out, "--force").code == 1
    assert out.read_text(encoding="utf-8").startswith("FAILED")


@pytest.mark.parametrize(
    ("when", "env", "terminal", "color"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": "", "TERM": "xterm"}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_when_there_is_colour(when: str, env: dict[str, str], terminal: bool, color: bool) -> None:
    assert wants_color(when, env, terminal=terminal) is color


def test_colour_never_goes_into_a_file(call: Call, nan_run: Path, tmp_path: Path) -> None:
    assert "\x1b[" in call("triage", nan_run, "--color", "always").out
    call("triage", nan_run, "--color", "always", "-o", tmp_path / "v.txt")
    assert "\x1b" not in (tmp_path / "v.txt").read_text(encoding="utf-8")


def test_a_suppressed_rule_is_counted(call: Call, nan_run: Path) -> None:
    every = call("triage", nan_run, "--format", "json").document
    rule = every["findings"][0]["rule"]
    some = call("triage", nan_run, "--ignore", rule, "--format", "json").document
    assert rule not in {finding["rule"] for finding in some["findings"]}
    assert some["suppressed"] >= 1


def test_a_file_of_the_working_directory_configures(call: Call, nan_run: Path) -> None:
    Path("forensics.toml").write_text('fail-on = "never"', encoding="utf-8")
    assert call("triage", nan_run).code == 0
    assert call("triage", nan_run, "--fail-on", "error").code == 1
    assert "never (forensics.toml)" in call("doctor").out


def test_a_file_inside_the_run_does_not(call: Call, nan_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(nan_run)
    Path("forensics.toml").write_text('fail-on = "never"', encoding="utf-8")
    done = call("triage", ".")
    assert done.code == 1
    assert "note: forensics.toml is not read: it lies inside the run" in done.err


def test_explain_takes_an_id_or_a_name(call: Call) -> None:
    listed = call("rules", "--format", "json").document["rules"]
    first = listed[0]
    by_id, by_name = call("explain", first["id"]), call("explain", first["name"])
    assert by_id.out == by_name.out
    assert by_id.out.startswith(f"{first['id']} {first['name']}: ")
    assert "What it detects" in by_id.out
    assert "Thresholds" in by_id.out
    assert call("explain", first["id"].lower(), "-f", "json").document["id"] == first["id"]


def test_rules_may_be_listed_by_shape(call: Call) -> None:
    shapes = {rule["shape"] for rule in call("rules", "--shape", "oom", "-f", "json").document["rules"]}
    assert shapes == {"oom"}
    assert call("rules", "-f", "markdown").out.startswith("| rule |")


def test_formats_lists_ingesters_and_dialects(call: Call) -> None:
    found = call("formats", "-f", "json").document
    assert "tfevents" in {f["name"] for f in found["formats"]}
    assert "kempnerforge" in {d["name"] for d in found["dialects"]}
    assert "Dialects" in call("formats").out
    assert "| dialect |" in call("formats", "-f", "markdown").out


def test_doctor_shows_versions_plugins_and_origins(call: Call) -> None:
    found = call("doctor", "-f", "json").document
    assert set(found) >= {"versions", "plugins", "configuration", "cache"}
    assert found["versions"]["polars"] != "missing"
    assert call("doctor").code == 0


def test_doctor_says_what_is_wrong_with_the_configuration(call: Call) -> None:
    Path("forensics.toml").write_text("colour = 1", encoding="utf-8")
    done = call("doctor")
    assert done.code == 2
    assert "unknown name 'colour'" in done.out


def test_ingest_keeps_the_tables_where_it_says(call: Call, nan_run: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    found = call("ingest", nan_run, "--store", store, "-f", "json").document
    assert found["tables"]["metrics"] == 160
    assert Path(found["store"]).is_dir()
    assert Path(found["store"]).is_relative_to(store)
    again = call("ingest", nan_run, "--store", store)
    assert again.code == 0
    assert "metrics 160" in again.out


def test_ingest_of_nothing_known_is_3(call: Call, odd_run: Path) -> None:
    assert call("ingest", odd_run).code == 3


def test_nan_origin_reads_a_pipe(nan_run: Path) -> None:
    data = (nan_run / "metrics.jsonl").read_bytes()
    command = [sys.executable, "-m", "forensics", "nan-origin", "-", "--format", "json"]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["first_bad_step"]) == ("forensics.nan-origin/1", 51)
    assert found["last_clean_step"] == 50


def test_nan_origin_of_a_good_run_is_none_and_of_an_odd_one_unknown(call: Call, good_run: Path, odd_run: Path) -> None:
    good, odd = call("nan-origin", good_run, "-f", "json"), call("nan-origin", odd_run, "-f", "json")
    assert (good.code, good.document["kind"]) == (0, "none")
    assert (odd.code, odd.document["kind"]) == (3, "unknown")


def test_nan_origin_text_says_where_and_proves_it(call: Call, nan_run: Path) -> None:
    said = call("nan-origin", nan_run).out
    assert said.startswith("NOT FINITE")
    assert "metrics.jsonl:51" in said
    assert call("nan-origin", nan_run, "-f", "markdown").out.startswith("## NaN origin")


def test_the_version_is_printed(call: Call) -> None:
    assert call("--version").out.startswith("forensics ")


def test_output_survives_a_terminal_that_knows_only_ascii() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "forensics", "formats"]
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
