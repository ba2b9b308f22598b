"""Signals that end a process, from `machines/signals.jsonl`: signal(7), and the words of bash and srun for each.

A row has `number`, `name`, `way` (`asked`: somebody asked the process to end; `killed`: it ended without its doing;
`aborted`: its own abort, or a watchdog's where it waited too long), `is_sent` (by a person, a scheduler or the kernel,
and by no fault of the program), `cause` of a process that said nothing else, and `words` (how launchers write it).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import Row, rows_of

#: A shell tells a signal as this much and its number.
_SHELL = 128


class Signal(Row, frozen=True):
    """One signal."""

    number: int
    name: str
    way: str
    cause: str
    words: tuple[str, ...]
    is_sent: bool = False


@cache
def _by_number() -> Mapping[int, Signal]:
    return {row.number: row for row in rows_of("machines/signals.jsonl", Signal)}


def signal_of(code: int) -> Signal | None:
    """Give the signal of an exit code: negative as a launcher tells it, or 128 and its number as a shell does."""
    return _by_number().get(-code if code < 0 else code - _SHELL)


def code_of(words: str) -> int | None:
    """Give the exit code, negative, of a signal that a launcher writes out; None for other words."""
    return next((-number for number, one in _by_number().items() if words in one.words), None)


def is_silent(cause: str) -> bool:
    """Whether a cause says no more than which signal ended a process: exit codes tell that, and not the process."""
    return any(one.way != "asked" and one.cause == cause for one in _by_number().values())


def is_asked(code: int) -> bool:
    """Whether an exit code says that somebody asked the process to end."""
    return _is(code, "asked")


def is_sent(code: int) -> bool:
    """Whether an exit code is the number of a signal which others send: to ask for an end, or to force it."""
    found = signal_of(code)
    return found is not None and found.is_sent


def is_killed(code: int) -> bool:
    """Whether an exit code says that a signal ended the process without its doing."""
    return _is(code, "killed")


def is_aborted(code: int) -> bool:
    """Whether an exit code is that of an abort."""
    return _is(code, "aborted")


def _is(code: int, way: str) -> bool:
    found = signal_of(code)
    return found is not None and found.way == way
