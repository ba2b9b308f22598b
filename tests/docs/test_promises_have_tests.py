"""Each promise of the threat model names the test that holds it, and that test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "what is done" not in line]
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:50])
def test_a_promise_names_a_test(row: str) -> None:
    assert re.search(r"`tests/[\w/]+\.py`", row.split("|")[3])


@pytest.mark.parametrize("path", NAMED)
def test_the_named_test_asserts_something(path: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    checks = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    assert checks
