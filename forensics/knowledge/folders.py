"""What a numbered folder beside its like is by its name, from `folders.jsonl`: a part of one job, or a run of its own.

A row has `is` (`part` or `run`), `names` (a pattern of what stands before the number) and its `source`.
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


@cache
def _named(kind: str, number: str) -> re.Pattern[str]:
    names = "|".join(row["names"] for row in bare_rows("folders.jsonl") if row["is"] == kind)
    return re.compile(f"(?i)(?:{names}){number}")
