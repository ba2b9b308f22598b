"""An exception that comes at another place, and says something else, in each attempt: chance brings it."""

from __future__ import annotations

from forensics.case.errors._failure import ANY
from forensics.case.errors.failures import Failure, failures
from forensics.case.processes.attempts import attempts
from forensics.knowledge.libraries import is_library_frame, package_of
from forensics.patterns import lazily
from forensics.store.run import Run

#: What a message that names a file has in it: a damaged one is met wherever a new order of samples puts it.
_A_FILE = lazily(r"\w[\\/]\w|\.\w{2,8}\b['\":, ]")


def moves(run: Run, source: str, line: int | None) -> bool:
    """Whether an earlier attempt ended in the same class with other words as the exception at a line.

    Only a class of the library that raised it, of which nothing else is known, is asked for.
    """
    every, tried = [f for f in failures(run) if f.exception and f.line is not None], attempts(run)
    last = next((f for f in every if (f.source, f.line) == (source, line) and _is_of_a_library(f)), None)
    return last is not None and any(
        f.exception == last.exception and f.message != last.message
        and tried.is_over(f.source, line=f.line, byte=f.byte, t_ns=f.t_ns)
        for f in every
    )  # fmt: skip


def _is_of_a_library(failure: Failure) -> bool:
    innermost = next(iter(failure.stack), "")
    own = is_library_frame(innermost) and failure.exception.startswith(f"{package_of(innermost)}.")
    return own and failure.cause == ANY and not _A_FILE.search(failure.message)
