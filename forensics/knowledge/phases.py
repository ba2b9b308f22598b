"""Phases of training, by words in the path or the function of a frame, from `phases.jsonl`.

A row has `phase`, `frame` (a pattern of the frame that raised), perhaps `around` (a pattern of a frame that called it:
what the program was doing, whatever part of it raised), and its `source`; the first row that fits decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from forensics.knowledge._rows import rows_of


def phase_of(frame: str, around: Iterable[str] = ()) -> str:
    """Give the phase of training from the frames that called, else from the one that raised; else `unknown`."""
    callers = tuple(around)
    for phase, _, calls in _phases():
        if calls is not None and any(calls.search(caller) for caller in callers):
            return phase
    return next((phase for phase, words, _ in _phases() if words.search(frame) is not None), "unknown")


@cache
def _phases() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str] | None], ...]:
    rows = rows_of("phases.jsonl")
    return tuple(
        (row["phase"], re.compile(row["frame"]), re.compile(row["around"]) if "around" in row else None) for row in rows
    )
