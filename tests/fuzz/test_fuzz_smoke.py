"""A short run of the fuzz harness; `make fuzz` is the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forensics import registry

HARNESS = Path(__file__).with_name("harness.py")


def test_mutated_inputs_end_in_no_exception_no_death_and_no_hang() -> None:
    if not registry.load("ingesters").ingesters:
        pytest.skip("no ingester is registered")
    done = subprocess.run([sys.executable, HARNESS, "--n", "25"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_harness_gives_the_same_case_for_the_same_number(tmp_path: Path) -> None:
    names = [one.name for one in registry.load("ingesters").ingesters]
    if not names:
        pytest.skip("no ingester is registered")
    for name in ("a", "b"):
        command = [sys.executable, HARNESS, "--ingester", names[0], "--case", "77", "--save", tmp_path / name]
        subprocess.run(command, capture_output=True, check=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_unknown_ingester_is_named() -> None:
    done = subprocess.run(
        [sys.executable, HARNESS, "--ingester", "nobody"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "nobody" in done.stderr
