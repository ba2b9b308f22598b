"""The standard streams: all three are there whatever the caller closed, and none of them can end the program."""

from __future__ import annotations

import os
import sys

#: The streams by their numbers. A closed one is filled so that reading the first and writing to the others fails
#: as on a closed one, and no file that is opened later can be taken for a stream.
_STREAMS = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))


def made_whole() -> None:
    """Open what the caller has closed, and let every stream write what is not in its encoding."""
    for number, (name, mode, flags) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number, which is this one
        if getattr(sys, name) is None:  # Python's own for a closed one
            opened = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, open for good
            setattr(sys, name, opened)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a test may replace the stream


def tell(text: str) -> None:
    """Write to stderr; where nobody can read it, nothing."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _let_go(sys.__stderr__, 2)


def refused_output() -> OSError | None:
    """What the system says to what waits for stdout; None where it can be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _let_go(sys.__stdout__ or sys.stdout, 1)
        return error
    return None


def let_go_of_output() -> None:
    """Drop what waits for stdout, whose reader has gone."""
    _let_go(sys.__stdout__ or sys.stdout, 1)


def _let_go(stream: object, number: int) -> None:
    # what is still buffered has no reader; without this the interpreter would complain at exit
    fileno = getattr(stream, "fileno", None)
    os.dup2(os.open(os.devnull, os.O_WRONLY), fileno() if fileno is not None else number)
