"""What `forensics triage` says of a run, as values and as one line of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.pipeline import triage
from forensics.report.text import render

if TYPE_CHECKING:
    from pathlib import Path

    from forensics.model import Report


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write the files of a run."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def report(folder: Path) -> Report:
    """The report of a run."""
    return triage(folder)


def told(folder: Path) -> str:
    """The default text, its lines joined, so that a wrapped sentence reads as one."""
    return " ".join(" ".join(render(triage(folder))).split())
