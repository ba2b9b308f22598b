"""Errors of a run that are its failure, and why the others are not.

An error is cleared where later steps, a later run in the same file or the run's own success marker follow it. A
complaint, a stop, a kill or an exception's lone line after a success marker is the noise of a tear-down. Whether a
later process got over what ended an earlier one is for the attempts to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import polars as pl

from forensics.case.end_markers import CLOSING_LINES, SURVIVED_STEPS, Mark, Marks, ends_the_log, last_lines, marks_of
from forensics.case.endings import ending
from forensics.case.errors._failure import Failure
from forensics.case.errors.exits import exits
from forensics.case.errors.hosts import days_apart
from forensics.case.errors.judged import CUT, judged
from forensics.case.errors.kinds import Weight
from forensics.case.last_steps import same_process
from forensics.case.processes.attempts import Attempts, attempts
from forensics.case.steps import in_file
from forensics.knowledge.causes import is_kind
from forensics.knowledge.errors import by_id, final, of_host, telling
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import replace

#: Other ranks that log this many steps after an error of one that logs none went on without it. A pipe holds 64 KiB
#: and a stream's buffer 8 KiB (Linux, pipe(7); glibc, BUFSIZ), which is about a hundred lines of a training log.
OTHERS_STEPS = 100
_DIGITS = lazily(r"\d+")
#: Python's own temporary folders, which a tear-down takes away from processes that are still there.
_TEMPORARY = lazily(r"/tmp/|pymp-|/dev/shm/")  # noqa: S108 - a name in a message, no file that is opened
_WORKER = lazily(r"^\W*\((?P<name>\w[\w.:]{0,120}) pid=(?P<pid>\d{1,10})\b")
#: An error that is raised so often, over such a time, is caught each time.
_OFTEN = 5
_LASTING_NS = 60_000_000_000
#: What a function of one rank caught and printed: a dump of PyTorch's debug server failed three times in 10 s.
_CAUGHT_OFTEN, _CAUGHT_NS = 3, 5_000_000_000


@derived
def failures(run: Run) -> tuple[Failure, ...]:
    """List the judged errors of a run in the order of their sources and lines, survived ones included."""
    found = judged(run)
    if not found:
        return ()
    end, taken_back = marks_of(run), _taken_back(run, found)
    last, again = last_lines(run), _recurring(found)
    unreported = not any(f.weight == Weight.WRAPPER and f.cause != CUT for f in found)
    tried = attempts(run)
    ended_from_outside = any(f.weight == Weight.STOP for f in found)
    stopped = tried.judged.number > 0 and ended_from_outside
    reached = (stopped or any(f.caught for f in found)) and ending(run).reach.is_reached
    died_first = _died_first(run, found)
    ended_by_itself = all(is_kind(f.cause, "ending") for f in found)

    def why(failure: Failure) -> str:
        if failure.at <= taken_back.get((failure.source, failure.code), -1):
            return "freed"
        sent_by_launcher = failure.weight == Weight.STOP and died_first and failure.rank not in died_first
        if sent_by_launcher or ended_by_itself:  # an error that ended the program would stand above
            return "teardown"
        if _is_over(failure, end, ended_from_outside=ended_from_outside):
            return "progress"
        of_another_day = failure.code in of_host() and days_apart(run, failure.t_ns)
        if of_another_day or tried.is_over(failure.source, line=failure.line, byte=failure.byte, t_ns=failure.t_ns):
            return "earlier"
        prints_on = last.get(failure.source, failure.at) > failure.at
        left_behind = _left_behind(failure, tried, end, reached=reached and prints_on) or _stopped_in_turn(
            failure, found, end
        )
        if failure.weight == Weight.STOP and left_behind:
            return "earlier"
        goes_on = not ends_the_log(failure.source, failure.line, last)
        return _cleared(
            failure,
            end,
            tried.end_of(failure.source, failure.at),
            goes_on=goes_on,
            unreported=unreported,
            reached=reached,
        ) or (
            "recurring"
            if goes_on and failure in again
            else "earlier"
            if _started_again(failure, found, end, last)
            else ""
        )

    told = tuple(replace(f, cleared=why(f)) for f in found)
    over = {_alike(f) for f in told if f.cleared == "finished" and f.exception and unreported}
    # what one rank got over, the others did too, though only one of them says that the run finished
    return tuple(replace(f, cleared="finished") if not f.cleared and _alike(f) in over else f for f in told)


def _is_over(failure: Failure, end: Marks, *, ended_from_outside: bool) -> bool:
    """Whether a wait at the end of a log is over: who trains has met all others, and got what it waited for.

    The record of a new step that says how long it waited for its data does not count.
    """
    if failure.code in final() and end.steps_of(failure.source).begins_at(failure.at):
        return True
    trains = bool(end.steps)
    joins = failure.code in telling("joining")
    return (trains or (joins and ended_from_outside)) and (joins or failure.code in telling("waiting"))


def _died_first(run: Run, found: Sequence[Failure]) -> frozenset[int]:
    """Ranks that ended by themselves before their launcher ended the others, which then tell of a signal.

    None where no rank did, or where somebody else than a worker tells of a signal: that one came from outside.
    """
    told = exits(run)
    if not told.ended_alive or any(f.weight == Weight.STOP and f.rank is None for f in found):
        return frozenset()
    return told.by_itself


def _left_behind(failure: Failure, tried: Attempts, end: Marks, *, reached: bool) -> bool:
    """Whether a log that places no attempt says a stop that the attempt that is judged left behind.

    The log says then that this one finished, or prints on, and training reached the end of its plan (`reached`). A job
    that was put back into the queue began again: where its last attempt finished, an earlier one was put back.
    """
    later = any(mark.source == failure.source and mark.at > failure.at for mark in end.successes)
    later |= failure.code in telling("requeued")
    finished = reached or (later and tried.judged.ended)
    return finished and tried.judged.number > 0 and failure.source not in tried.cuts


def _stopped_in_turn(stop: Failure, found: Sequence[Failure], end: Marks) -> bool:
    """Whether a log tells of several stops, each lines behind the one before, and later on that training finished.

    One process is stopped once and prints little after it: the last of several that wrote one log finished.
    """
    own = sorted(f.line for f in found if f.source == stop.source and f.weight == Weight.STOP and f.line is not None)
    last = max((m.line for m in end.successes if m.source == stop.source and m.line is not None), default=0)
    return len(own) > 1 and all(b - a > CLOSING_LINES for a, b in pairwise((*own, last)))


def _taken_back(run: Run, found: Iterable[Failure]) -> dict[tuple[str, str], int]:
    """Give the last place of each source at which a warning is taken back, by source and the warning's code."""
    rows = {f.code: by_id()[f.code].taken_back_by for f in found if f.code in by_id()}
    back = {code: by for code, by in rows.items() if by}
    if not back:
        return {}
    at = in_file().max()
    told = (
        run.scan("events").filter(pl.col("code").is_in([*back.values()])).group_by("source", "code").agg(at).collect()
    )
    return {(source, code): place for source, by, place in told.iter_rows() for code in back if back[code] == by}


def standing(run: Run) -> tuple[Failure, ...]:
    """List the errors that were not survived."""
    return tuple(failure for failure in failures(run) if not failure.cleared)


def _cleared(  # noqa: PLR0913 - what is known of the run's end, each by its name
    failure: Failure, end: Marks, until: int | None, *, goes_on: bool, unreported: bool, reached: bool
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


def _alike(failure: Failure) -> tuple[str, str]:
    """Key of errors that several ranks raise together: the class and the words, numbers aside."""
    return failure.exception, _DIGITS.sub("#", failure.message)


def _started_again(stop: Failure, found: Sequence[Failure], end: Marks, last: Mapping[str, int]) -> bool:
    """Whether a stop ended an attempt before a later one failed to start: what it loads was missing.

    The later one follows the stop, or is in the other stream of a process that prints on after the stop, and nothing
    was trained since. `last` gives the last line of each log.
    """
    if stop.weight != Weight.STOP or end.steps_of(stop.source).at_least(1, after=stop.at):
        return False
    prints_on = last.get(stop.source, stop.at) > stop.at

    def follows(other: Failure) -> bool:
        same = other.source == stop.source and other.at > stop.at
        return same or (other.source != stop.source and prints_on and same_process(other.source, stop.source))

    missing = {by_id()[line].cause for line in telling("missing")}
    starts = (
        f for f in found if f.cause in missing and f.exception and not f.aside and not _TEMPORARY.search(f.message)
    )
    return any(map(follows, starts))


def _recurring(failures: Sequence[Failure]) -> frozenset[Failure]:
    """Give the own errors that a program raised again and again: it outlived them.

    Either by the clock of its log, over minutes and the same class each time: ranks that fail together do so within
    seconds, and where a launcher tells of an end, groups of workers are started again and fail alike; what a function
    caught and printed was outlived after seconds. Or by the name and the process that Ray puts before a line: a process
    that raises twice has outlived the first error, and so have the other workers of that name.
    """
    ended = {f.source for f in failures if f.weight in (Weight.WRAPPER, Weight.STOP)}
    alike: dict[tuple[str, ...], list[Failure]] = {}
    workers: dict[tuple[str, str], list[tuple[str, Failure]]] = {}
    for failure in failures:
        if failure.weight != Weight.OWN or not failure.exception or failure.source in ended:
            continue
        alike.setdefault((failure.source, failure.exception), []).append(failure)
        if (worker := _WORKER.match(failure.quote)) is not None:
            workers.setdefault((failure.source, worker["name"]), []).append((worker["pid"], failure))
    lasting = [f for found in alike.values() if _outlived(found) for f in found]
    twice = [found for found in workers.values() if len(found) > len({pid for pid, _ in found})]
    return frozenset((*lasting, *(failure for found in twice for _, failure in found)))


def _outlived(found: Sequence[Failure]) -> bool:
    """Whether errors of one class and source came so often, and over such a time, that each was caught."""
    caught = all(f.caught for f in found) and len({f.rank for f in found}) == 1 and found[0].rank is not None
    often, lasting_ns = (_CAUGHT_OFTEN, _CAUGHT_NS) if caught else (_OFTEN, _LASTING_NS)
    return len(found) >= often and _span_ns(found) >= lasting_ns


def _span_ns(found: Sequence[Failure]) -> int:
    times = [f.t_ns for f in found if f.t_ns is not None]
    return max(times) - min(times) if times else 0


def _survived(failure: Failure, end: Marks, until: int | None) -> bool:
    """Whether the same rank (or, when ranks are unknown, the same file) trained on in the same attempt."""
    needed = SURVIVED_STEPS if failure.rank is not None or failure.weight >= Weight.STOP else 1
    steps = end.steps_of(failure.source)
    if steps.at_least(needed, after=failure.at, before=until, rank=failure.rank):
        return True
    silent = failure.rank is not None and failure.rank not in steps.ranks
    return silent and steps.at_least(OTHERS_STEPS, after=failure.at, before=until)


def _ended_well_elsewhere(failure: Failure, end: Marks, *, goes_on: bool, unreported: bool) -> bool:
    """Whether another log reports the run's good end, and the process printed on after its error or says so itself.

    A host is no process: its log may end with any line, and a run that ended well got over what it says.
    """
    if failure.weight == Weight.STOP or end.steps_of(failure.source).at:
        return False
    last = end.final
    if last is None or last.source == failure.source:
        return False
    # who waits for another at its end has not ended, though its other stream says so
    marks = end.finals() if failure.weight > Weight.STOP else iter((last,))
    own = (one for one in marks if unreported and same_process(failure.source, one.source))
    passed = goes_on or (unreported and failure.code in of_host())
    final = last if passed and failure.rank is None else next(own, None)
    return final is not None and (final.t_ns is None or failure.t_ns is None or final.t_ns >= failure.t_ns)


def _after_success(failure: Failure, success: Mark) -> str:
    before = success.source == failure.source and success.at < failure.at
    if before or success.source != failure.source:
        echo = failure.weight == Weight.ECHO and failure.head is None
        return "teardown" if echo or failure.aside or failure.weight <= Weight.STOP else ""
    return "" if failure.weight == Weight.STOP else "finished"
