"""What `forensics triage` says of a run, as values and as one line of text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from forensics.pipeline import triage
from forensics.report.text import render

if TYPE_CHECKING:
    from forensics.model import Report

#: The last run that was asked for, byte for byte, and its report: a test asks for its values and then for its text.
_LAST: list[tuple[object, Report]] = []


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write the files of a run."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def report(folder: Path) -> Report:
    """The report of a run; one whose files did not change since is not judged again."""
    paths = (folder, *sorted(folder.rglob("*")))
    asked = [(path, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in paths]
    if not _LAST or _LAST[0][0] != asked:
        _LAST[:] = [(asked, triage(folder))]
    return _LAST[0][1]


def told(folder: Path) -> str:
    """The default text, its lines joined, so that a wrapped sentence reads as one."""
    return " ".join(" ".join(render(report(folder))).split())
