"""The page from the command line, redaction of every output, progress and completion."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli import _complete
from forensics.cli._progress import said, watched
from forensics.pipeline import Progress

from .conftest import Call, rows

pytestmark = pytest.mark.usefixtures("read_once")
PLANTED = ("mwinter", "atlas-07", "10.21.3.44", "m.winter@lab.example.org", "hf_a1B2a1B2a1B2a1B2a1B2")
FORMATS = ("text", "json", "markdown", "github", "junit", "html")


@pytest.fixture(scope="module")
def told_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under a home folder, whose files speak of people, machines and secrets."""
    folder = tmp_path_factory.mktemp("disk") / "home" / "mwinter" / "runs" / "mwinter-sweep"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(rows(51), encoding="utf-8")
    log = "".join(
        f"2026-01-01 10:00:{i:02d},000 - INFO - step {i} loss {'nan' if i > 20 else 3 - i / 20:.4} on host=atlas-07\n"
        for i in range(1, 40)
    )
    tail = (
        "Traceback (most recent call last):\n"
        '  File "/home/mwinter/train.py", line 12, in main\n'
        "RuntimeError: cannot reach atlas-07 at 10.21.3.44 as m.winter@lab.example.org "
        "with hf_a1B2a1B2a1B2a1B2a1B2 from /home/mwinter/data\n"
    )
    (folder / "train-atlas-07.log").write_text(log + tail, encoding="utf-8")
    (folder / "wandb-metadata.json").write_text(
        json.dumps({"host": "atlas-07", "username": "mwinter", "email": "m.winter@lab.example.org"}), encoding="utf-8"
    )
    return folder


def test_the_page_is_one_file_whose_exit_code_is_that_of_triage(call: Call, nan_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = call("report", nan_run, "-o", out)
    assert (done.code, done.out, done.err) == (call("triage", nan_run).code, "", f"Wrote {out}\n")
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<polyline" in page
    assert "<script" not in page
    assert len(page) < 400_000
    assert call("report", nan_run, "-o", out).code == 2
    assert call("report", nan_run, "-o", out, "--force", "--exit-zero").code == 0
    assert out.read_text(encoding="utf-8") == page


def test_triage_writes_the_same_page_beside_its_verdict(call: Call, nan_run: Path, tmp_path: Path) -> None:
    done = call("triage", nan_run, "--html", tmp_path / "a.html")
    assert done.out.startswith("FAILED")
    call("report", nan_run, "-o", tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert call("triage", nan_run, "-f", "html").out == (tmp_path / "b.html").read_text(encoding="utf-8")


def test_several_runs_are_one_page(call: Call, nan_run: Path, good_run: Path) -> None:
    page = call("report", nan_run, good_run).out
    assert page.count("<!doctype html>") == 1
    assert "2 runs" in page


def test_the_format_never_changes_the_exit_code(call: Call, nan_run: Path, good_run: Path, odd_run: Path) -> None:
    for run in ((nan_run,), (good_run,), (odd_run,), (nan_run, good_run, odd_run)):
        plain = call("triage", *run).code
        assert {form: call("triage", *run, "-f", form).code for form in FORMATS} == dict.fromkeys(FORMATS, plain)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("verbose", [False, True])
def test_no_planted_name_leaves_in_any_format(call: Call, told_run: Path, form: str, verbose: bool) -> None:
    open_ = call("triage", told_run, "-f", form, "-v")
    assert any(word in open_.out for word in PLANTED)
    hidden = call("triage", told_run, "-f", form, "--redact", *(["-v"] if verbose else []))
    assert hidden.code == open_.code
    assert not [word for word in PLANTED if word in hidden.out + hidden.err]


def test_no_planted_name_leaves_by_the_page_or_nan_origin(call: Call, told_run: Path) -> None:
    for args in (
        ("report", told_run, "--redact"),
        ("report", told_run, told_run, "--redact"),
        ("nan-origin", told_run, "--redact"),
        ("nan-origin", told_run, "--redact", "-v", "-f", "json"),
        ("nan-origin", told_run, "--redact", "-f", "markdown"),
    ):
        assert not [word for word in PLANTED if word in call(*args).out]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_a_terminal_and_not_for_quiet_ones() -> None:
    for stream, quiet in ((io.StringIO(), False), (Terminal(), True)):
        with watched(quiet=quiet, stream=stream) as seen:
            assert seen is None
        assert stream.getvalue() == ""


def test_progress_is_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.cli._progress._PATIENCE_S", 0.0)
    stream = Terminal()
    with watched(quiet=False, stream=stream) as seen:
        assert seen is not None
        seen(Progress(1, 3, 2_000_000, 8_000_000))
        while "reading" not in stream.getvalue():
            pass
    assert "1 of 3 files, 2 of 8 MB" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")


def test_progress_says_files_rate_and_what_is_left() -> None:
    assert said(Progress(1, 3, 2_000_000, 8_000_000), 2.0) == "reading: 1 of 3 files, 2 of 8 MB, 1 MB/s, 6 s left"
    assert said(Progress(0, 1, 0, 8_000_000), 2.0) == "reading: 0 of 1 files, 0 of 8 MB, 2 s"


def test_the_shell_is_offered_rule_ids_and_names() -> None:
    offered = dict(_complete.rules("NAN00"))
    assert offered["NAN001"] == "nan-first-nonfinite"
    assert ("nan-first-nonfinite", "NAN001") in _complete.rules("nan-f")
    assert _complete.rules("zzz") == []
    assert _complete.formats("j") == ["json", "junit"]


def test_completion_answers_through_the_environment_without_a_table_engine() -> None:
    env = {
        **os.environ,
        "_FORENSICS_COMPLETE": "complete_bash",
        "COMP_WORDS": "forensics explain NAN00",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "forensics"], env=env, capture_output=True, text=True, check=False
    )
    assert "NAN001" in done.stdout.split()
    assert "polars" not in done.stderr
