"""Which files of a stack a run does not own: the interpreter and installed packages, from `libraries.jsonl`.

A row has `files` (a pattern that a path holds), `package` where the name behind it is that of an installed package,
and its `source`.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import bare_rows


def is_library(file: str) -> bool:
    """Whether a file is the interpreter's or an installed package's; one without a name is taken for one."""
    return not file or _pattern().search(file) is not None


def is_library_frame(frame: str) -> bool:
    """Whether a frame as a traceback has it, `train.py:22 in main`, is in such a file."""
    return is_library(frame.partition(" in ")[0].rpartition(":")[0])


def package_of(frame: str) -> str:
    """The installed package that a frame is in; empty for the program's own files and the interpreter's."""
    found = _packages().search(frame)
    return found["package"] if found is not None else ""


def short_frame(frame: str) -> str:
    """Write a frame of an installed package from the package on, any other as it is, and none with an empty number."""
    found = _packages().search(frame)
    return (frame[found.start("package") :] if found is not None else frame).replace(": in ", " in ")


@cache
def library_files() -> str:
    """The pattern that a path of such a file holds."""
    return "|".join(f"(?:{row['files']})" for row in bare_rows("libraries.jsonl"))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(library_files())


@cache
def _packages() -> re.Pattern[str]:
    named = "|".join(f"(?:{row['files']})" for row in bare_rows("libraries.jsonl") if row.get("package"))
    return re.compile(rf"(?:{named})(?P<package>\w+)")
