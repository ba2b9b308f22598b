"""Every way out of the program, and its code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.cli._answer import Gate, lost
from forensics.errors import ExitCode, InputError
from forensics.model import (
    Causal,
    Confidence,
    Coverage,
    Evidence,
    FileCoverage,
    FileStatus,
    Finding,
    Outcome,
    Report,
    Severity,
    Shape,
    Verdict,
)

from .conftest import Call


def report(severity: Severity | None, outcome: Outcome, *, causal: Causal = Causal.ROOT, lost_bytes: int = 0) -> Report:
    findings = () if severity is None else (
        Finding("OOM001", Shape.OOM, severity, Confidence.HIGH, "", "", (Evidence("a"),), causal=causal),
    )  # fmt: skip
    files = (FileCoverage("a", 9, 9 - lost_bytes, lost_bytes, FileStatus.PARTIAL),)
    return Report("r", Verdict(outcome, ""), findings, Coverage(files))


FAILED, SUSPECT, HEALTHY, CANNOT = Outcome.FAILED, Outcome.SUSPECT, Outcome.HEALTHY, Outcome.CANNOT_SAY
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


@pytest.mark.parametrize(
    ("gate", "severity", "outcome", "code"),
    [
        (Gate(), ERROR, FAILED, 1),
        (Gate(), WARNING, FAILED, 0),
        (Gate(), WARNING, SUSPECT, 0),
        (Gate(), None, HEALTHY, 0),
        (Gate(), None, CANNOT, 3),
        (Gate(), WARNING, CANNOT, 3),
        (Gate(), ERROR, CANNOT, 1),
        (Gate("warning"), WARNING, FAILED, 1),
        (Gate("warning"), WARNING, SUSPECT, 1),
        (Gate("warning"), INFO, HEALTHY, 0),
        (Gate("never"), WARNING, SUSPECT, 0),
        (Gate("oom"), WARNING, SUSPECT, 1),
        (Gate("info"), INFO, HEALTHY, 1),
        (Gate("never"), ERROR, FAILED, 0),
        (Gate("never"), None, CANNOT, 3),
        (Gate("oom"), WARNING, FAILED, 1),
        (Gate("oom"), INFO, FAILED, 0),
        (Gate("nan"), ERROR, FAILED, 0),
        (Gate(exit_zero=True), ERROR, FAILED, 0),
        (Gate(exit_zero=True), None, CANNOT, 0),
    ],
)
def test_what_was_found_decides(gate: Gate, severity: Severity | None, outcome: Outcome, code: int) -> None:
    assert gate.of_reports([report(severity, outcome)]) == code


def test_strict_speaks_up_when_bytes_were_lost_whatever_was_found() -> None:
    strict = Gate(strict=True)
    assert strict.of_reports([report(ERROR, FAILED, lost_bytes=3)]) == ExitCode.INPUT_LOST
    assert strict.of_reports([report(None, HEALTHY, lost_bytes=3)]) == ExitCode.INPUT_LOST
    assert strict.of_reports([report(None, CANNOT, lost_bytes=3)]) == ExitCode.INPUT_LOST
    assert strict.of_reports([report(None, CANNOT)]) == ExitCode.CANNOT_SAY
    assert Gate(strict=True, exit_zero=True).of_reports([report(None, CANNOT, lost_bytes=3)]) == ExitCode.OK
    assert strict.of_reports([report(ERROR, FAILED)]) == ExitCode.FINDINGS


@pytest.mark.parametrize(("outcome", "code"), [(HEALTHY, 0), (SUSPECT, 0), (CANNOT, 3), (FAILED, 1)])
def test_noise_around_a_run_that_did_not_fail_does_not_fail_the_caller(outcome: Outcome, code: int) -> None:
    assert Gate().of_reports([report(ERROR, outcome, causal=Causal.CONTEXT)]) == code


def test_a_warning_of_the_run_itself_counts_though_it_explains_no_failure() -> None:
    assert Gate("warning").of_reports([report(WARNING, SUSPECT, causal=Causal.CONTEXT)]) == ExitCode.FINDINGS


def test_a_file_that_may_not_be_read_is_lost() -> None:
    assert lost(Coverage((FileCoverage("a", 9, 0, 9, FileStatus.SKIPPED, reason="unreadable: Permission denied"),)))
    assert not lost(Coverage((FileCoverage("a", 9, 0, 9, FileStatus.SKIPPED, reason="weights, not read"),)))


def test_of_several_runs_one_that_failed_is_enough() -> None:
    assert Gate().of_reports([report(None, CANNOT), report(ERROR, FAILED), report(None, HEALTHY)]) == 1


def test_runs_from_disk(call: Call, nan_run: Path, good_run: Path, odd_run: Path) -> None:
    codes = {run.name: call("triage", run).code for run in (nan_run, good_run, odd_run)}
    assert codes == {"nan": 1, "good": 0, "odd": 3}


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_format_never_changes_the_code(call: Call, nan_run: Path, form: str) -> None:
    assert call("triage", nan_run, "--format", form).code == 1
    assert call("nan-origin", nan_run, "--format", form).code == 1


def test_an_empty_folder_is_never_healthy(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert call("triage", tmp_path / "empty").code == 3


@pytest.mark.parametrize(
    ("line", "words", "help_line"),
    [
        ("trige x", "Did you mean 'triage'", "forensics --help"),
        ("triage", "Missing argument", "forensics triage --help"),
        ("triage nowhere", "no such file or directory: nowhere", "ls /"),
        ("triage . --bogus", "No such option", "forensics triage --help"),
        ("triage . --format xml", "not one of", "--help"),
        ("triage . --format jsn", "did you mean 'json'", "--help"),
        ("triage . --fail-on wrong", "fail-on: 'wrong' is not one of", "--help"),
        ("triage . --color sometimes", "--color: 'sometimes' is not one of", "--help"),
        ("triage . --ignore CRH01", "did you mean 'CRH001'", "forensics rules"),
        ("nan-origin nowhere/run-7", "no such file or directory", "ls /"),
        ("explain crh01", "no such rule: crh01 (did you mean 'CRH001'?)", "forensics rules"),
        ("rules --shape round", "not one of", "--help"),
        ("doctor --format markdown", "not one of", "--help"),
    ],
)
def test_a_usage_error_is_2_and_says_what_to_do(call: Call, line: str, words: str, help_line: str) -> None:
    done = call(*line.split())
    assert (done.code, done.out) == (2, "")
    error, help_said = done.err.splitlines()
    assert error.startswith("error: ")
    assert words in error
    assert help_said.startswith("  help: ")
    assert help_line in help_said


def test_no_command_at_all_is_a_usage_error_that_shows_the_page(call: Call) -> None:
    done = call()
    assert (done.code, done.out) == (2, "")
    assert "Usage: forensics" in done.err


def test_an_error_never_repeats_an_escape_sequence(call: Call) -> None:
    assert "\x1b" not in call("triage", "no\x1b[31mwhere").err


class Panic(BaseException):
    """What a table engine may raise: not an Exception."""


@pytest.mark.parametrize("kind", [Panic, ValueError, RecursionError])
def test_a_bug_is_70_with_one_line_and_a_crash_file_and_no_verdict(
    call: Call, monkeypatch: pytest.MonkeyPatch, good_run: Path, kind: type[BaseException]
) -> None:
    def broken(*_args: object, **_options: object) -> None:
        raise kind("\x1b]0;pwned\x07")

    monkeypatch.setattr(pipeline, "ingest_run", broken)
    done = call("triage", good_run)
    assert (done.code, done.out) == (70, "")
    assert done.err.splitlines()[0] == f"error: a bug of forensics ({kind.__name__}); no verdict was reached"
    crash = Path(done.err.splitlines()[1].removeprefix("  file: "))
    said = crash.read_text(encoding="utf-8")
    crash.unlink()
    assert "in broken" in said
    assert "\x1b" not in said


def test_an_input_that_cannot_be_read_is_3(call: Call, monkeypatch: pytest.MonkeyPatch, good_run: Path) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise InputError("not a run", help="forensics formats")

    monkeypatch.setattr(pipeline, "ingest_run", refuse)
    assert call("triage", good_run).code == 3


def test_an_interrupt_is_130(call: Call, monkeypatch: pytest.MonkeyPatch, good_run: Path) -> None:
    def stop(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "ingest_run", stop)
    assert call("triage", good_run).code == 130


def test_a_real_interrupt_is_130(tmp_path: Path) -> None:
    code = "import os, signal; from forensics import pipeline; from forensics.cli.main import run; import sys\n"
    code += "pipeline.ingest_run = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\nsys.exit(run(['triage', '.']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert signal.SIGINT == 2


@pytest.mark.parametrize(("options", "seen"), [((), False), (("-W", "default"), True)])
def test_what_a_library_warns_of_is_seen_by_those_who_ask(tmp_path: Path, options: list[str], *, seen: bool) -> None:
    code = "import sys, warnings; from forensics import pipeline; from forensics.cli.main import run\n"
    code += "real = pipeline.ingest_run\n"
    code += "pipeline.ingest_run = lambda *a, **k: (warnings.warn('overflow', stacklevel=1), real(*a, **k))[1]\n"
    code += "sys.argv = ['forensics', 'triage', '.']; run()"
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("overflow" in done.stderr, "CANNOT SAY" in done.stdout) == (seen, True)


@pytest.mark.parametrize("args", [["--help"], ["triage", "--help"], ["formats"], ["--version"]])
def test_a_closed_pipe_is_141_and_silent(args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "forensics", *args]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("command", [("nan-origin",), ("hang",), ("memory",), ("diff", "good")])
def test_a_command_for_one_run_names_those_of_a_place_and_asks_for_one(
    call: Call, tmp_path: Path, command: tuple[str, ...]
) -> None:
    for number in (1, 2):
        (tmp_path / "sweep" / f"seed-{number}").mkdir(parents=True)
        lines = [f"step {n} | loss: {3 - n / 50 + number / 7:.4f} | lr: 1.00e-03" for n in range(1, 61)]
        (tmp_path / "sweep" / f"seed-{number}" / "train.log").write_text("\n".join(lines) + "\n")
    name, *others = command
    done = call(name, *(tmp_path / "sweep" / "seed-1" for _ in others), tmp_path / "sweep")
    assert done.code == ExitCode.USAGE
    assert "holds 2 runs: seed-1, seed-2" in done.err
    assert f"give one of them, as {tmp_path}/sweep/seed-1" in done.err
    assert call("triage", tmp_path / "sweep", "--exit-zero").code == ExitCode.OK
