"""What a rank was doing, by its last words or a frame, and the phase of training: `doing`, `phases` of `failures/`.

`row` names a row. `words` is a search in the last line, `frames` one in `function file` of a frame; one may be missing.
`doing` says it in words; `cause` is what it is a hint at, empty where the line is another rule's to read; `source`. The
first row that fits decides.

A phase has `phase`, `frame` (a pattern of the path or the function of the frame that raised), perhaps `around` (one of
a frame that called it: what the program was doing, whatever part of it raised), and its `source`; the first fits.

The part of a program that an exception came from is in `failures/parts.jsonl`: `part`, `stack` (a search in the frames
of its traceback, one a line and the innermost first; empty: any), `asks` (what to look at there, the end of an advice
on an exception that no row of its own knows), `source`, and frames that are and are not such a part (`like`, `unlike`).

What to do about a log that ends without a word on how the run did is in `failures/open_ends.jsonl`: `row`, `words` (a
search in the last line; empty: any), `advice`, perhaps a `command`, and `source`. What such a log ends with is where
the run was last seen, and no proof that it stood still there, so an advice begins with that condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from forensics.knowledge._rows import Row, bare_rows, rows_of


class Doing(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    cause: str
    doing: str
    source: str
    words: str = ""
    frames: str = ""


class OpenEnd(Row, frozen=True):
    """One row of `failures/open_ends.jsonl`."""

    row: str
    words: str
    advice: str
    source: str
    command: str = ""


class Part(Row, frozen=True):
    """One row of `failures/parts.jsonl`."""

    part: str
    stack: str
    asks: str
    source: str
    like: tuple[str, ...]
    unlike: tuple[str, ...]


def part_of(frames: Iterable[str]) -> Part:
    """Give the part of a program that raised, from the frames of its traceback, the innermost first."""
    stack = "\n".join(frames)
    return next(row for row in rows_of("failures/parts.jsonl", Part) if re.search(row.stack, stack))


def open_ends() -> tuple[OpenEnd, ...]:
    """Give every row of `failures/open_ends.jsonl`, in the order of the file."""
    return rows_of("failures/open_ends.jsonl", OpenEnd)


def open_end_of(line: str) -> OpenEnd | None:
    """Give the first row whose words a last line has; None where it is nothing that anybody described."""
    return next((row for row in open_ends() if row.words and re.search(row.words, line)), None)


def any_end() -> OpenEnd:
    """Give the row of every other end."""
    return next(row for row in open_ends() if not row.words)


def by_words(line: str) -> Doing | None:
    """Give what a rank was at that printed a line last; None where its words hint at nothing."""
    rows = rows_of("failures/doing.jsonl", Doing)
    found = next((row for row in rows if row.words and re.search(row.words, line)), None)
    return found if found is not None and found.cause else None


def by_frame(frame: str) -> Doing | None:
    """Give what a rank was at whose stack has a frame, `function file`; None where its names hint at nothing."""
    rows = rows_of("failures/doing.jsonl", Doing)
    return next((row for row in rows if row.frames and re.search(row.frames, frame)), None)


def is_unsaved(cause: str) -> bool:
    """Whether a cause says that a rank was still saving."""
    return any(row.cause == cause and row.doing == "saving" for row in rows_of("failures/doing.jsonl", Doing))


def phase_of(frame: str, around: Iterable[str] = ()) -> str:
    """Give the phase of training from the frames that called, else from the one that raised; else `unknown`."""
    callers = tuple(around)
    for phase, _, calls in _phases():
        if calls is not None and any(calls.search(caller) for caller in callers):
            return phase
    return next((phase for phase, words, _ in _phases() if words.search(frame) is not None), "unknown")


@cache
def _phases() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str] | None], ...]:
    rows = bare_rows("failures/phases.jsonl")
    return tuple(
        (row["phase"], re.compile(row["frame"]), re.compile(row["around"]) if "around" in row else None) for row in rows
    )
