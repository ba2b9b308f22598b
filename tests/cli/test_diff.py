"""`forensics diff` from the outside: exit codes, every format, what is refused, and the action around it."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

from forensics.cli.main import run

ROOT = Path(__file__).parents[2]


def write_run(folder: Path, slower: float, seed: int, *, n: int = 300, config: dict[str, object] | None = None) -> Path:
    chance = random.Random(seed)
    folder.mkdir()
    rows = []
    for step in range(1, n + 1):
        seconds = 0.4 * slower * math.exp(chance.gauss(0, 0.02)) + (2 if step % 60 == 0 else 0)
        rows.append({"step": step, "loss": 3 - step / n, "step_time": seconds})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    if config is not None:
        (folder / "hparams.yaml").write_text("".join(f"{k}: {v}\n" for k, v in config.items()), encoding="utf-8")
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_run(tmp_path / "base", 1.0, 1)


def answer(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, dict]:
    code = run(["diff", *map(str, args), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_slower_run_is_a_regression_and_fails(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = answer(capsys, base, write_run(tmp_path / "cand", 1.1, 2))
    assert (code, found["verdict"]) == (1, "regression")
    assert found["change"] == pytest.approx(-0.091, abs=0.01)
    assert found["interval"][0] < found["change"] < found["interval"][1] < 0
    schema = json.loads((files("forensics.report") / "_schema/diff-1.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)


def test_a_faster_run_and_an_equal_one_pass(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, base, write_run(tmp_path / "fast", 0.8, 3))[0] == 0
    code, found = answer(capsys, base, write_run(tmp_path / "same", 1.0, 4), "--max-slowdown", "5%")
    assert (code, found["verdict"]) == (0, "no_change")


def test_a_slowdown_that_is_allowed_does_not_fail(base: Path, tmp_path: Path) -> None:
    cand = write_run(tmp_path / "cand", 1.05, 5)
    assert run(["diff", str(base), str(cand)]) == 1
    assert run(["diff", str(base), str(cand), "--max-slowdown", "15%"]) == 0


def test_too_few_steps_are_inconclusive_and_say_so(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = write_run(tmp_path / "short", 1.0, 6, n=5)
    assert run(["diff", str(base), str(short)]) == 3
    assert "cannot be compared" in capsys.readouterr().out
    assert run(["diff", str(base), str(short), "--inconclusive", "pass"]) == 0
    assert run(["diff", str(base), str(short), "--inconclusive", "fail"]) == 1


def test_runs_of_another_batch_are_not_comparable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a", 1.0, 7, config={"batch_size": 8})
    b = write_run(tmp_path / "b", 2.0, 8, config={"batch_size": 16})
    code, found = answer(capsys, a, b)
    assert (code, found["verdict"]) == (3, "inconclusive")
    assert "batch" in found["headline"]
    assert answer(capsys, a, b, "--anyway")[0] == 1


def test_several_baselines_measure_the_noise_of_runs(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [write_run(tmp_path / f"base{k}", 1 + k / 200, 10 + k) for k in range(2)]
    cand = write_run(tmp_path / "cand", 1.2, 20)
    code, found = answer(capsys, "--base", base, "--base", more[0], "--base", more[1], cand)
    assert (code, found["sections"]["throughput"]["numbers"]["baselines"]) == (1, 3)


def test_a_run_that_became_slow_is_compared_from_there_on(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cand = write_run(tmp_path / "cand", 1.0, 30)
    rows = [json.loads(line) for line in (cand / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    slow = [r | {"step_time": r["step_time"] * (2 if r["step"] > 200 else 1)} for r in rows]
    (cand / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in slow), encoding="utf-8")
    code, found = answer(capsys, base, cand)
    assert (code, found["sections"]["throughput"]["numbers"]["since_step"]) == (1, 201)


@pytest.mark.parametrize("form", ["text", "markdown", "github", "junit", "json"])
def test_the_format_does_not_change_the_exit_code(
    form: str, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cand = write_run(tmp_path / "cand", 1.5, 40)
    assert run(["diff", str(base), str(cand), "--format", form]) == 1
    text = capsys.readouterr().out
    if form == "github":
        assert text.startswith("::error file=")
        assert len(text.splitlines()) <= 10
    if form == "junit":
        assert ET.fromstring(text).attrib["failures"] == "1"


def test_a_name_with_commands_in_it_stays_a_name(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cand = write_run(tmp_path / "a,b:c%", 1.5, 41)
    run(["diff", str(base), str(cand), "--format", "github"])
    out = capsys.readouterr().out
    assert "a%2Cb%3Ac%25/metrics.jsonl" in out
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize(
    "args", [["x"], ["x", "y", "z"], ["x", "y", "--max-slowdown", "5"], ["x", "y", "--section", "nothing"], ["x", "y"]]
)
def test_a_wrong_call_is_refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", *args]) == 2
    assert "help:" in capsys.readouterr().err


def steps_of_the_action() -> list[dict[str, object]]:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]


@pytest.mark.parametrize(("slower", "code", "verdict"), [(1.2, 1, "regression"), (1.0, 0, "no_change")])
def test_the_steps_of_the_action_run_locally(
    base: Path, tmp_path: Path, slower: float, code: int, verdict: str
) -> None:
    cand = write_run(tmp_path / "cand", slower, 50)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "forensics").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forensics "$@"\n', encoding="utf-8")
    (tools / "forensics").chmod(0o755)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (tools / "python").chmod(0o755)
    summary, outputs = tmp_path / "summary.md", tmp_path / "outputs"
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(tmp_path),
        "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs), "CANDIDATE": str(cand), "BASE": f"{base}\n",
        "MAX_SLOWDOWN": "5%", "INCONCLUSIVE": "pass", "METRIC": "", "ARGUMENTS": "", "HOME": str(tmp_path),
    }  # fmt: skip
    judge = next(step for step in steps_of_the_action() if step.get("id") == "run")
    done = subprocess.run(["bash", "-e", "-c", str(judge["run"])], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    said = dict(line.split("=", 1) for line in outputs.read_text(encoding="utf-8").splitlines())
    assert (said["verdict"], said["exit-code"]) == (verdict, str(code))
    assert f"Comparison: {verdict.replace('_', ' ')}" in summary.read_text(encoding="utf-8")
    assert json.loads(Path(said["document"]).read_text(encoding="utf-8"))["verdict"] == verdict
    assert sum(line.startswith("::") for line in done.stdout.splitlines()) <= 10
    if code:
        assert "::error file=" in done.stdout
