"""One error of a run, and how the events of one error become one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from forensics.case.errors.kinds import UNKNOWN, Weight, of_line
from forensics.knowledge.errors import by_id, opening
from forensics.values import replace

#: The cause of an error of which nothing is known but its class.
ANY = UNKNOWN[2]
_TRACEBACK_LINES = 400
#: A message of several lines is over after so many; one that announces what follows, `Graph execution error:`, shows
#: the frames of a node first: some 25 frames of two or three lines each in public logs of Keras, and room for more.
_MESSAGE_LINES, _ANNOUNCED_LINES = 6, 120
#: A line's usual length, where a source knows bytes only.
_LINE_BYTES = 120
_NEAR_EVENTS = 12


class Failure(Struct, frozen=True):
    """One error of the run; `cleared` says why it is not the run's failure, and is empty when it may be.

    `more`: the lines with which its message goes on; `stack`: frames of a traceback, innermost first; `statement`: what
    the innermost one was about to do; `said`: what the program logged as an error just before it, at line `said_at`;
    `head`: the line where it begins; `told_line`: that of its words, where an earlier exception of its chain decides;
    `caught`: a function of the program printed it, and no entry of the program was left. Of `cleared`,
    `progress`: it was caught; `earlier`: it ended an earlier run in the same file, or a host told it on another day;
    `finished`: the run's own success marker follows it; `recurring`: the program raised it again and again and printed
    on; `teardown`: it follows the success marker; `freed`: a later line, or its own, takes it back.
    """

    source: str
    line: int | None
    byte: int | None
    t_ns: int | None
    rank: int | None
    step: int | None
    code: str
    shape: str
    weight: Weight
    cause: str
    exception: str
    message: str
    quote: str
    more: str = ""
    aside: bool = False
    stack: tuple[str, ...] = ()
    statement: str = ""
    said: str = ""
    said_at: int | None = None
    head: int | None = None
    told_line: int | None = None
    caught: bool = False
    cleared: str = ""

    @property
    def at(self) -> int:
        """Place inside its source."""
        return self.line if self.line is not None else self.byte or 0

    @property
    def own_words(self) -> str:
        """What the program said of it just before, where nothing is known of it but its class."""
        return self.said if self.cause == ANY and self.said_at is not None else ""


def merged(found: Iterable[Failure]) -> tuple[Failure, ...]:
    """Give a traceback the judgement of a signature in its own last line, and drop that signature."""
    rows = list(found)
    taken: set[int] = set()
    raised = frozenset((f.source, f.at) for f in rows if f.code == "traceback")
    named = {i: _with_signature(f, i, rows, taken, raised) for i, f in enumerate(rows) if _opens(f)}
    printed: dict[tuple[str, str], list[Failure]] = {}
    for failure in rows:
        printed.setdefault((failure.source, failure.code), []).append(failure)
    return tuple(_placed(named.get(i, failure), printed) for i, failure in enumerate(rows) if i not in taken)


def _placed(failure: Failure, printed: Mapping[tuple[str, str], Sequence[Failure]]) -> Failure:
    """Judge a line by what it means behind an earlier one, where its row says so and there is one."""
    row = by_id().get(failure.code)
    after = row.after if row is not None else None
    means = of_line(after.means, {}) if after is not None else None
    if after is None or means is None:
        return failure
    unless = re.compile(after.unless or "(?!)")
    earlier = printed.get((failure.source, after.line), ())
    if not any(0 < failure.at - f.at <= after.within and not unless.search(f.quote) for f in earlier):
        return failure
    weight, shape, cause = means
    return replace(failure, shape=shape, weight=weight, cause=cause)


def _with_signature(
    failure: Failure, i: int, rows: list[Failure], taken: set[int], raised: frozenset[tuple[str, int]]
) -> Failure:
    """`raised` are the places of all exceptions with a traceback of their own: none is the message of another."""
    said = (failure.message or failure.exception)[:60]
    for j in range(max(0, i - _NEAR_EVENTS), min(i + _NEAR_EVENTS, len(rows))):
        other = rows[j]
        if j in taken or j == i or other.source != failure.source or other.code == "traceback":
            continue
        if _inside(failure, other) or (_within(failure, other, _TRACEBACK_LINES) and said and said in other.quote):
            taken.add(j)
            if _says_little(failure) and other.weight >= Weight.CLOSED:
                failure = _judged_as(failure, other)
        elif _says_little(failure) and _goes_on(failure, other) and (other.source, other.at) not in raised:
            taken.add(j)
            failure = _judged_as(failure, other)
    return failure


def _inside(failure: Failure, other: Failure) -> bool:
    """Whether a signature is in the last line of an exception, or in the chain above it."""
    chain = failure.head is not None and other.rank == failure.rank and failure.head <= other.at <= failure.at
    return other.at == failure.at or chain


def _judged_as(failure: Failure, other: Failure) -> Failure:
    return replace(failure, shape=other.shape, weight=other.weight, cause=other.cause, code=other.code)


def _within(failure: Failure, other: Failure, lines: int) -> bool:
    if failure.line is None or other.line is None:
        return abs((failure.byte or 0) - (other.byte or 0)) <= lines * _LINE_BYTES
    return abs(other.at - failure.at) <= lines


def _goes_on(failure: Failure, other: Failure) -> bool:
    """Whether a signature is in the lines that continue an exception's message, by the same rank."""
    lines = _ANNOUNCED_LINES if failure.message.endswith(":") else _MESSAGE_LINES
    after = other.at > failure.at and other.rank == failure.rank and _within(failure, other, lines)
    row = by_id().get(other.code)
    return after and (other.weight == Weight.OWN or (row is not None and row.continues))


def _opens(failure: Failure) -> bool:
    """Whether lines below may say more of it."""
    row = by_id().get(failure.code)
    return failure.code == "traceback" or (row is not None and row.opens)


def _says_little(failure: Failure) -> bool:
    """Whether nothing is known of it but its class, or that a process which it started failed."""
    return failure.cause == ANY or failure.weight == Weight.WRAPPER or failure.cause in opening()
