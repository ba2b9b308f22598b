"""What a rank was at, by the words that it printed last or by a frame of its stack, from `doing.jsonl`.

`row` names a row. `words` is a search in the last line, `frames` one in `function file` of a frame; one may be missing.
`doing` says it in words; `cause` is what it is a hint at, empty where the line is another rule's to read; `source`.
The first row that fits decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from forensics.knowledge._rows import rows_of


@dataclass(frozen=True, slots=True)
class Doing:
    """One row; the fields are those of the table."""

    row: str
    cause: str
    doing: str
    source: str
    words: str = ""
    frames: str = ""


@cache
def _rows() -> tuple[Doing, ...]:
    return tuple(Doing(**row) for row in rows_of("doing.jsonl"))


def by_words(line: str) -> Doing | None:
    """Give what a rank was at that printed a line last; None where its words hint at nothing."""
    found = next((row for row in _rows() if row.words and re.search(row.words, line)), None)
    return found if found is not None and found.cause else None


def by_frame(frame: str) -> Doing | None:
    """Give what a rank was at whose stack has a frame, `function file`; None where its names hint at nothing."""
    return next((row for row in _rows() if row.frames and re.search(row.frames, frame)), None)
