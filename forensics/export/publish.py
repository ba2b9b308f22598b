"""From an export to the disk: never into the run, whole or not at all, with a note on its content beside a folder."""

from __future__ import annotations

import os
from pathlib import Path

from forensics.errors import UsageError
from forensics.export.target import Export, Selection, Target
from forensics.io.atomic import write_atomic, write_folder
from forensics.io.tolerant_json import dumps

#: The file that tells a folder of ours from any other; only such a folder is ever replaced.
MARKER = "forensics-export.json"


def check_place(run: Path | None, place: Path, *, folder: bool) -> None:
    """Ask that nothing of the run can be changed by writing to `place`, links followed; None is a run elsewhere.

    Raises `UsageError` when the place is the run, inside it, or a folder around it.
    """
    if run is None:
        return
    try:
        source, target = run.resolve(), place.resolve()
    except (OSError, RuntimeError) as error:
        message = f"{os.fspath(place)!r}: its links lead nowhere"
        raise UsageError(message, help="name another place: -o PLACE") from error
    inside = target == source or (source.is_dir() and target.is_relative_to(source))
    if place.exists() and run.exists():
        inside = inside or place.samefile(run)
    if inside or (folder and source.is_relative_to(target)):
        message = f"{os.fspath(place)!r} lies in the run, which is never written to"
        if not inside:
            message = f"{os.fspath(place)!r} is a folder around the run, which is never written to"
        raise UsageError(message, help=f"name another place: -o {Path('..') / 'export'}")


def publish(export: Export, target: Target, selection: Selection, place: Path, *, force: bool) -> None:
    """Write the files of an export to `place`, a file or a folder as the target has it.

    Raises `UsageError` when the place is taken, or cannot be written to.
    """
    if not target.folder:
        write_atomic(place, export.files[0].data, force=force)
        return
    files = {file.path: file.data for file in export.files}
    about = {
        "schema": "forensics.export/1",
        "to": target.name,
        "run": selection.run,
        "points": selection.points.height,
        "files": [{"path": file.path, "size_bytes": len(file.data)} for file in export.files],
        "notes": export.notes,
    }
    write_folder(place, {**files, MARKER: dumps(about) + b"\n"}, MARKER, force=force)
