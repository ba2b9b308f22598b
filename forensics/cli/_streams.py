"""The standard streams: all three are there whatever the caller closed, and none of them can end the program."""

from __future__ import annotations

import os
import sys

#: How a closed descriptor is filled: reading the first and writing to the second fails as on a closed one, and no file
#: that is opened later can be taken for a stream.
_FILLED = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)


def made_whole() -> None:
    """Open what the caller has closed, and let every stream write what is not in its encoding."""
    for number, flags in enumerate(_FILLED):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number, which is this one
    if sys.stdin is None:  # type: ignore[reportUnnecessaryComparison] # Python's own for a closed one
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, open for good
    if sys.stdout is None:  # type: ignore[reportUnnecessaryComparison]
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - same
    if sys.stderr is None:  # type: ignore[reportUnnecessaryComparison]
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - same
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
