"""What a numbered folder beside its like is by its name, from `folders.jsonl`: a part of one job, or a run of its own.

A row has `is` (`part` or `run`), `names` (a pattern of what stands before the number) and its `source`; or `holds`, the
path of a file that the program writes once in the folder of each run.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import bare_rows


def is_part_of_job(name: str) -> bool:
    """Whether folders of such a name are ranks, nodes, attempts or products of one job; bare numbers are."""
    return name.isdigit() or _named("part", r"[_-]?s?\d*").fullmatch(name) is not None


def is_run(name: str) -> bool:
    """Whether folders of such a name are runs, though one of them died before it trained."""
    return _named("run", r"[_-]?\d+").fullmatch(name) is not None


def home_of(path: str) -> str | None:
    """The folder of a run, where a path is that of the file that its program writes once into it."""
    found = _held().fullmatch(path)
    return found[1] if found is not None else None


@cache
def _held() -> re.Pattern[str]:
    return re.compile(f"(.+)/(?:{'|'.join(row['holds'] for row in bare_rows('folders.jsonl') if 'holds' in row)})")


@cache
def _named(kind: str, number: str) -> re.Pattern[str]:
    names = "|".join(row["names"] for row in bare_rows("folders.jsonl") if row["is"] == kind and "names" in row)
    return re.compile(f"(?i)(?:{names}){number}")
