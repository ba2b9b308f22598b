"""Phases of training, by words in the path or the function of a frame, from `phases.jsonl`.

A row has `phase`, `frame` (a pattern) and its `source`; the first row that fits decides.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import rows_of


def phase_of(frame: str) -> str:
    """Give the phase of training from the frame that raised; `unknown` when nothing in it says so."""
    return next((phase for phase, words in _phases() if words.search(frame) is not None), "unknown")


@cache
def _phases() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((row["phase"], re.compile(row["frame"])) for row in rows_of("phases.jsonl"))
