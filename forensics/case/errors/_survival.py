"""Why an error is not the run's failure: later steps, a later run in the same file, or the run's own success marker.

A complaint, a stop, a kill or an exception's lone line after a success marker is the noise of a tear-down. Whether a
later process got over what ended an earlier one is for the attempts to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from forensics.case.end_markers import Mark, Marks
from forensics.case.errors.kinds import Weight
from forensics.case.last_steps import same_process

#: A rank that logs this many later steps has survived its error; fewer may be output that was still in a buffer.
SURVIVED_STEPS = 3
#: Other ranks that log this many steps after an error of one that logs none went on without it. A pipe holds 64 KiB
#: and a stream's buffer 8 KiB (Linux, pipe(7); glibc, BUFSIZ), which is about a hundred lines of a training log.
OTHERS_STEPS = 100
_DIGITS = re.compile(r"\d+")
#: What a program finds missing while it starts.
_MISSING = frozenset({"file_missing", "module_missing"})
#: Python's own temporary folders, which a tear-down takes away from processes that are still there.
_TEMPORARY = re.compile(r"/tmp/|pymp-|/dev/shm/")  # noqa: S108 - a name in a message, no file that is opened
_WORKER = re.compile(r"^\W*\((?P<name>\w[\w.:]{0,120}) pid=(?P<pid>\d{1,10})\b")
#: An error that is raised so often, over such a time, is caught each time.
_OFTEN = 5
_LASTING_NS = 60_000_000_000


class Judged(Protocol):
    """What is asked of an error here."""

    @property
    def source(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def t_ns(self) -> int | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def weight(self) -> Weight: ...
    @property
    def exception(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def head(self) -> int | None: ...
    @property
    def caught(self) -> bool: ...
    @property
    def cause(self) -> str: ...
    @property
    def quote(self) -> str: ...
    @property
    def aside(self) -> bool: ...


def cleared(  # noqa: PLR0913 - what is known of the run's end, each by its name
    failure: Judged, end: Marks, until: int | None, *, goes_on: bool, unreported: bool, reached: bool
) -> str:
    """Say why an error is not the run's failure, or nothing.

    `until` is the place in its log at which another attempt begins; `goes_on` says that the log goes on for some lines,
    `unreported` that no launcher tells of an end by failure, and `reached` that training came to the end of its plan.
    """
    if _survived(failure, end, until):
        return "progress"
    success = end.success_for(failure.source, failure.at, failure.t_ns)
    if success is not None:
        return _after_success(failure, success)
    if failure.caught and reached and unreported and not end.steps_of(failure.source).at:
        return "finished"  # an uncaught error would have been printed from the program's entry on
    return "finished" if _ended_well_elsewhere(failure, end, goes_on=goes_on, unreported=unreported) else ""


def alike(failure: Judged) -> tuple[str, str]:
    """Key of errors that several ranks raise together: the class and the words, numbers aside."""
    return failure.exception, _DIGITS.sub("#", failure.message)


def started_again(stop: Judged, found: Sequence[Judged], end: Marks, last: Mapping[str, int]) -> bool:
    """Whether a stop ended an attempt of which a later one failed to start: what it loads was missing.

    The later one stands behind the stop, or in the other stream of a process that prints on after the stop, and nothing
    was trained since. `last` gives the last line of each log.
    """
    if stop.weight != Weight.STOP or end.steps_of(stop.source).at_least(1, after=stop.at):
        return False
    prints_on = last.get(stop.source, stop.at) > stop.at

    def follows(other: Judged) -> bool:
        same = other.source == stop.source and other.at > stop.at
        return same or (other.source != stop.source and prints_on and same_process(other.source, stop.source))

    starts = (
        f for f in found if f.cause in _MISSING and f.exception and not f.aside and not _TEMPORARY.search(f.message)
    )
    return any(map(follows, starts))


def recurring(failures: Sequence[Judged]) -> frozenset[Judged]:
    """Give the own errors that a program raised again and again: it outlived them.

    Either by the clock of its log, over minutes and the same class each time: ranks that fail together do so within
    seconds, and where a launcher tells of an end, groups of workers are started again and fail alike. Or by the name
    and the process that Ray puts before a line: a process that raises twice has outlived the first error, and so have
    the other workers of that name.
    """
    ended = {f.source for f in failures if f.weight in (Weight.WRAPPER, Weight.STOP)}
    alike: dict[tuple[str, ...], list[Judged]] = {}
    workers: dict[tuple[str, str], list[tuple[str, Judged]]] = {}
    for failure in failures:
        if failure.weight != Weight.OWN or not failure.exception or failure.source in ended:
            continue
        alike.setdefault((failure.source, failure.exception), []).append(failure)
        if (worker := _WORKER.match(failure.quote)) is not None:
            workers.setdefault((failure.source, worker["name"]), []).append((worker["pid"], failure))
    lasting = [f for found in alike.values() if len(found) >= _OFTEN and _span_ns(found) >= _LASTING_NS for f in found]
    twice = [found for found in workers.values() if len(found) > len({pid for pid, _ in found})]
    return frozenset((*lasting, *(failure for found in twice for _, failure in found)))


def _span_ns(found: Sequence[Judged]) -> int:
    times = [f.t_ns for f in found if f.t_ns is not None]
    return max(times) - min(times) if times else 0


def _survived(failure: Judged, end: Marks, until: int | None) -> bool:
    """Whether the same rank (or, when ranks are not told apart, the same file) trained on in the same attempt."""
    needed = SURVIVED_STEPS if failure.rank is not None or failure.weight >= Weight.STOP else 1
    steps = end.steps_of(failure.source)
    if steps.at_least(needed, after=failure.at, before=until, rank=failure.rank):
        return True
    silent = failure.rank is not None and failure.rank not in steps.ranks
    return silent and steps.at_least(OTHERS_STEPS, after=failure.at, before=until)


def _ended_well_elsewhere(failure: Judged, end: Marks, *, goes_on: bool, unreported: bool) -> bool:
    """Whether another log tells of the run's good end, and the process printed on after its error or says so itself."""
    if failure.weight == Weight.STOP or end.steps_of(failure.source).at:
        return False
    final = end.final
    if final is None or final.source == failure.source:
        return False
    if not (goes_on and failure.rank is None) and not (unreported and same_process(failure.source, final.source)):
        return False
    return final.t_ns is None or failure.t_ns is None or final.t_ns >= failure.t_ns


def _after_success(failure: Judged, success: Mark) -> str:
    before = success.source == failure.source and success.at < failure.at
    if before or success.source != failure.source:
        echo = failure.weight == Weight.ECHO and failure.head is None
        return "teardown" if echo or failure.aside or failure.weight <= Weight.STOP else ""
    return "" if failure.weight == Weight.STOP else "finished"
