"""What an error is by its row of the table: its own failure, a complaint about a peer, a wrapper's echo, or a stop."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import IntEnum
from typing import cast

from forensics.knowledge.errors import ErrorLine, by_id, raised, table

#: How the code of an exit record ends, whoever keeps it; that of an exit by 0 ends in `.ended`.
EXIT_RECORD = ".exit"


class Weight(IntEnum):
    """How much an error explains by itself; the higher one is nearer to the cause."""

    WRAPPER = 0
    CLOSED = 1
    TIMEOUT = 2
    STOP = 3
    ECHO = 4
    OWN = 5


Judgement = tuple[Weight, str, str]
#: An exception of which nothing is known but its class.
UNKNOWN: Judgement = (Weight.OWN, "crash", "uncaught_exception")


def of_exception(
    exception: str, message: str, frames: Sequence[str] = (), statement: str = "", more: str = ""
) -> Judgement:
    """Judge the last line of a traceback and its frames: weight, shape and cause; the first row that fits decides."""
    return _judged(row_of_exception(exception, message, places(frames, statement), more=more))


def places(frames: Sequence[str], statement: str) -> tuple[str, ...]:
    """Give the frames of a traceback and, behind them, what the innermost one was about to do, as rows search them."""
    return (*frames, f"> {statement}") if statement else tuple(frames)


def of_lone_line(exception: str, message: str, *, ends_log: bool, more: str = "") -> Judgement | None:
    """Judge an exception's line without a traceback: it counts if it ends a log or kept a program from starting."""
    row = row_of_exception(exception, message, alone=True, more=more)
    if row is None or row.cause == UNKNOWN[2]:
        return (Weight.ECHO, *UNKNOWN[1:]) if ends_log else None
    return _judged(row) if ends_log or row.alone else None


def row_of_exception(
    exception: str, message: str, frames: Sequence[str] = (), *, alone: bool = False, more: str = ""
) -> ErrorLine | None:
    """Give the first row that fits an exception and its frames; `alone`: its line has no traceback.

    Where its first line says little, the lines with which its message goes on (`more`) may say what it is; what stands
    below an exception without a message is of somebody else.
    """
    said = words_of(exception, message)
    found = _first_row(said, frames, alone=alone)
    if not (more and message) or (found is not None and found.cause != UNKNOWN[2]):
        return found
    longer = _first_row(words_of(exception, message, more), frames, alone=alone, kinds=("own",))
    return longer or found


def words_of(exception: str, message: str, more: str = "") -> str:
    """What an exception says, as rows search it."""
    return "\n".join(filter(None, (f"{exception}: {message}" if message else exception, more)))


def _first_row(said: str, frames: Sequence[str], *, alone: bool, kinds: Sequence[str] = ()) -> ErrorLine | None:
    rows = (row for row in raised() if row.alone <= alone and (not kinds or row.kind in kinds))
    rows = (row for row in rows if row.compiled.search(said))
    return next((row for row in rows if not row.frames or _raised_there(row, frames)), None)


def _raised_there(row: ErrorLine, frames: Sequence[str]) -> bool:
    return any(re.search(row.frames, one) for one in (frames[:1] if row.innermost else frames))


def _judged(row: ErrorLine | None) -> Judgement:
    if row is None:
        return UNKNOWN
    weight = Weight[row.kind.upper()]
    # of a process that speaks of another one alone, what ended is a process
    return weight, "crash" if weight <= Weight.CLOSED else row.shape, row.cause


def of_line(code: str, attrs: dict[str, str], *, ends_log: bool = False) -> Judgement | None:
    """Judge an event by its row, or, of a trainer's own line, by its role and shape; None where it is no error."""
    row = by_id().get(code)
    if row is not None:
        return _judged(row) if row.is_error or (row.final and ends_log) else None
    root, shape = attrs.get("role") == "root", attrs.get("shape", "")
    if attrs.get("role") not in {"root", "symptom"} or not shape:
        return None
    kind = {"stopped": "stop" if root else "wrapper", "hang": "timeout"}.get(shape, "own" if root else "echo")
    return Weight[kind.upper()], shape, attrs.get("cause", "") or code.replace("-", "_")


def death_of(code: str, cause: str) -> str:
    """Give the words for a process that ended without its doing: those of its line, or of a record's cause."""
    if code.endswith(EXIT_RECORD):
        return next((row.words for row in table() if row.shape == "crash" and row.cause == cause and row.words), "")
    known = by_id().get(code)
    return known.words if known is not None and known.shape == "crash" else ""


def sender_of(code: str, cause: str = "") -> str:
    """Give the words for who stopped a run: those of a line of the catalogue, else of its lines of a cause."""
    stops = [row for row in table() if row.shape == "stopped" and row.words]
    return next((row.words for row in stops if row.id == code), next((r.words for r in stops if r.cause == cause), ""))


def attributes(text: str | None) -> dict[str, str]:
    """Read the JSON object of an event's `attrs`, as strings; empty when absent or damaged."""
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in cast("dict[object, object]", found).items()}
