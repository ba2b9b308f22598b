"""The how-to pages tell the truth: the one file each shows is found, and works, with no other file edited."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = re.compile(r'^````python title="(?P<path>[^"]+)"\n(?P<code>.*?)^````$', re.MULTILINE | re.DOTALL)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, in which the page's file may be written."""
    shutil.copytree(ROOT / "forensics", tmp_path / "forensics", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def write_the_file_of(page: str, folder: Path) -> None:
    found = FILE.findall((ROOT / "docs/how-to" / page).read_text(encoding="utf-8"))
    assert len(found) == 1, "a page shows exactly one file"
    ((path, code),) = found
    assert not (folder / path).exists()
    (folder / path).write_text(code, encoding="utf-8")


def forensics(folder: Path, *args: str) -> dict:
    env = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "forensics", *args, "--format", "json"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def run_tests_of_the_project(folder: Path, *names: str) -> None:
    """Run the project's own tests against the copy."""
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    env = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", *names]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_rule_of_the_page_is_listed_explained_and_fires(copy: Path) -> None:
    write_the_file_of("add-a-rule.md", copy)
    listed = {rule["id"]: rule for rule in forensics(copy, "rules")["rules"]}
    assert listed["LRN900"]["thresholds"] == [{"name": "records", "type": "int", "default": 3}]
    assert forensics(copy, "explain", "zero-learning-rate")["id"] == "LRN900"
    rows = [{"step": step, "loss": 3.0 - step / 100, "lr": 0.001 if step < 30 else 0.0} for step in range(1, 61)]
    run = copy / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    findings = {f["rule"]: f for f in forensics(copy, "triage", str(run))["findings"]}
    assert findings["LRN900"]["onset"]["step"] == 30
    assert findings["LRN900"]["evidence"][0]["line"] == 30


def test_the_rule_of_the_page_passes_the_tests_that_every_rule_must_pass(copy: Path) -> None:
    write_the_file_of("add-a-rule.md", copy)
    run_tests_of_the_project(copy, "tests/meta/test_rule_examples.py", "-k", "LRN900")


def test_the_dialect_of_the_page_is_listed_and_read(copy: Path) -> None:
    write_the_file_of("add-a-dialect.md", copy)
    assert "tidewheel" in {d["name"] for d in forensics(copy, "formats")["dialects"]}
    good = [f"[tw] it={step} | ce={4.0 - step / 50:.4f} | gn={0.8 + step % 3 / 10:.3f}" for step in range(1, 41)]
    bad = [f"[tw] it={step} | ce=nan | gn=nan" for step in range(41, 61)]
    (copy / "train.log").write_text("\n".join([*good, *bad]) + "\n", encoding="utf-8")
    found = forensics(copy, "triage", "train.log")
    assert "tidewheel" in found["coverage"]["files"][0]["format"]
    assert found["verdict"]["shape"] == "nan"
    assert found["verdict"]["onset"]["step"] == 41


def test_the_dialect_of_the_page_passes_the_tests_that_every_dialect_must_pass(copy: Path) -> None:
    write_the_file_of("add-a-dialect.md", copy)
    run_tests_of_the_project(copy, "tests/unit/dialects/test_dialect_examples.py", "-k", "tidewheel")
