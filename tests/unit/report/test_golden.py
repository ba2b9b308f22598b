"""What the renderers write, byte for byte: `FORENSICS_WRITE_GOLDEN=1 pytest` writes the files of tests/golden anew."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from forensics.model import Report
from forensics.report import json_v1, markdown, text
from forensics.report.payload import tool
from forensics.report.style import Style

GOLDEN = Path(__file__).parents[2] / "golden"


def assert_golden(name: str, lines: Iterable[str]) -> None:
    written = "".join(f"{line}\n" for line in lines).replace(f'"{tool()["version"]}"', '"VERSION"')
    path = GOLDEN / name
    if os.environ.get("FORENSICS_WRITE_GOLDEN"):
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8")


def test_a_failed_run_as_text(failed: Report) -> None:
    assert_golden("failed.txt", text.render(failed))


def test_a_failed_run_as_text_with_everything(failed: Report) -> None:
    assert_golden("failed-verbose.txt", text.render(failed, Style(verbose=True)))


def test_a_failed_run_as_json(failed: Report) -> None:
    assert_golden("failed.json", json_v1.render(failed))


def test_a_failed_run_as_markdown(failed: Report) -> None:
    assert_golden("failed.md", markdown.render(failed))


def test_a_healthy_run_as_text(healthy: Report) -> None:
    assert_golden("healthy.txt", text.render(healthy))


def test_a_run_of_which_nothing_can_be_said_as_text(silent: Report) -> None:
    assert_golden("cannot-say.txt", text.render(silent))


def test_a_run_of_which_nothing_can_be_said_as_markdown(silent: Report) -> None:
    assert_golden("cannot-say.md", markdown.render(silent))


def test_several_runs_as_text(failed: Report, healthy: Report, silent: Report) -> None:
    assert_golden("several.txt", text.render_many([healthy, failed, silent, failed]))


def test_several_runs_as_markdown(failed: Report, healthy: Report, silent: Report) -> None:
    assert_golden("several.md", markdown.render_many([healthy, failed, silent, failed]))
