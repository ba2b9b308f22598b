"""Lines by which a known failure shows, from `failures/errors.jsonl`; all that is known of such a line is in its row.

| field | what it holds |
|---|---|
| `kind` | `own` (the failure itself), `echo` (of an earlier one), `stop` (from outside), `timeout` (a peer did not come), `closed` (a peer is gone), `wrapper` (a child failed), `context` (no error), `benign` (looks like one) |
| `shape`, `cause`, `family` | what it is a sign of |
| `pattern`, `needles` | a search in a line, and literals of which one is in every hit; a row without needles searches `Class: message` of an exception, or the words of a log's last line where it tells `finished_as_last_line` |
| `frames` | a search in the frames of the exception's traceback, `file:line in function` each, and in `> ` with the statement that raised it, which must hit, too |
| `innermost` | `frames` is searched for in the frame that raised it alone |
| `why`, `fix` | one sentence each; empty where those of the cause say it. A value in `fix` is written as in `causes.py` |
| `words` | the rest of a sentence: what ended the process, who stopped the run, what the program said |
| `speaks_of` | whose state it tells: `named`, the rank in its words; `another` than the one that prints it; the `host`, as its kernel does; else that one |
| `tells` | a fact that a part of the program reads of such lines |
| `final` | an error where it ends its log, context elsewhere |
| `alone` | holds for an exception's line without a traceback only, wherever it is |
| `at_start` | a start fails so, that of a group whose forerunner still holds the place too |
| `opens`, `continues` | says little, and a line below may say more; may be such a line |
| `clue` | what it proves about a rank of a hang |
| `taken_back_by` | the row of the line that takes it back |
| `after` | what it means after another line |
| `like`, `unlike` | a line that is read as this row, and one that nearly is; a test runs both |
"""  # noqa: E501 - a row of the table is one line

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache

from msgspec import field

from forensics.knowledge._rows import Row, rows_of
from forensics.patterns import compiled

#: Kinds that are no error.
_HARMLESS = ("context", "benign")
#: Kinds that a failure of its own may have.
_ROOTS = ("own", "stop")
#: So many texts are kept with what they say: a verdict asks for each of its lines several times.
_KEPT = 64


class After(Row, frozen=True):
    """What a line means behind another one: `means` is the row that it is judged as.

    `line` is the row of the earlier line, at most `within` lines above and without a hit of `unless`.
    """

    line: str
    within: int
    means: str
    unless: str = ""


class Clue(Row, frozen=True):
    """What a line proves about the rank that it names (groups `ranks`, `missing`, `rank`), else the one that prints it.

    `by` is who says it: a line of the `log` or of the `host`, a `rendezvous`, or a `failure` of that cause; `weight` is
    how much it decides; every group of `where` fits its pattern. `rank` is at fault whoever prints the line, `majority`
    where more than half of the ranks are named. `gone` is the cause where ranks lost a peer and none timed out.
    `waits`: whoever prints it waits itself, so that it is not at fault where another one names it.
    """

    by: str
    cause: str
    weight: int | float
    words: str
    where: Mapping[str, str] = field(default_factory=dict[str, str])
    rank: int | None = None
    majority: int | None = None
    gone: str = ""
    waits: bool = False

    def holds(self, hit: re.Match[str]) -> bool:
        """Whether a hit of the row's pattern is one that proves it."""
        said = hit.groupdict()
        return all(re.fullmatch(pattern, said.get(name) or "") for name, pattern in self.where.items())


class ErrorLine(Row, frozen=True):
    """One row of the table; the fields are those of its head."""

    id: str
    kind: str
    shape: str
    cause: str
    pattern: str
    source: str
    like: str
    unlike: str
    needles: tuple[str, ...] = ()
    frames: str = ""
    innermost: bool = False
    family: str = ""
    why: str = ""
    fix: str = ""
    words: str = ""
    speaks_of: str = ""
    tells: str = ""
    final: bool = False
    alone: bool = False
    at_start: bool = False
    opens: bool = False
    continues: bool = False
    clue: Clue | None = None
    taken_back_by: str = ""
    after: After | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern for Python's engine."""
        return compiled(self.pattern)

    @property
    def role(self) -> str:
        """What its events say they are: `root`, `symptom`, `context` or `benign`."""
        if self.final or self.kind in _HARMLESS:
            return "benign" if self.kind == "benign" else "context"
        return "root" if self.kind in _ROOTS else "symptom"

    @property
    def is_error(self) -> bool:
        """Whether it is an error wherever it is printed."""
        return self.role in {"root", "symptom"}


def table() -> tuple[ErrorLine, ...]:
    """Give every row, in the order of the file."""
    return rows_of("failures/errors.jsonl", ErrorLine)


@cache
def lines() -> tuple[ErrorLine, ...]:
    """Give the rows that are searched for in lines."""
    return tuple(row for row in table() if row.needles)


@cache
def closing() -> tuple[ErrorLine, ...]:
    """Give the rows that are searched for in the last line of a log alone."""
    return tuple(row for row in table() if row.id in telling("finished_as_last_line"))


@cache
def _errors() -> tuple[ErrorLine, ...]:
    return tuple(row for row in lines() if row.is_error)


@cache
def raised() -> tuple[ErrorLine, ...]:
    """Give the rows that judge an exception, those for exceptions alone before those for any line."""
    speak = ("own", "stop", "echo", "timeout", "closed")
    last = telling("finished_as_last_line")
    alone = (row for row in table() if row.id not in last)
    return tuple(row for row in alone if not row.needles or (row.is_error and row.kind in speak))


@cache
def opening() -> frozenset[str]:
    """Give the causes of lines that say little, and below which a line may say more."""
    return frozenset(row.cause for row in table() if row.opens)


@cache
def final() -> frozenset[str]:
    """Give the ids of the lines that are errors only where they end their log."""
    return frozenset(row.id for row in table() if row.final)


@cache
def by_id() -> Mapping[str, ErrorLine]:
    """Give every row by its id."""
    return {row.id: row for row in table()}


@cache
def telling(fact: str) -> frozenset[str]:
    """Give the ids of the lines that tell a fact; raises `KeyError` when no row tells it."""
    found = frozenset(row.id for row in table() if row.tells == fact)
    if not found:
        raise KeyError(fact)
    return found


@cache
def clues(by: str) -> tuple[tuple[ErrorLine, Clue], ...]:
    """Give the rows that prove something about a rank of a hang, with what they prove, by who says it."""
    return tuple((row, row.clue) for row in table() if row.clue is not None and row.clue.by == by)


@cache
def of_host() -> frozenset[str]:
    """Give the ids of the lines by which the log of a host tells of a fault."""
    return frozenset(row.id for row, _ in clues("host")) | speaking_of("host")


@cache
def speaking_of(whom: str) -> frozenset[str]:
    """Give the ids of the lines that tell the state of a rank `named` in them, of `another`, or of the `host`."""
    return frozenset(row.id for row in table() if row.speaks_of == whom)


@cache
def starting() -> frozenset[str]:
    """Give the causes that make a start fail while the place is still held."""
    return frozenset(row.cause for row in table() if row.at_start)


def row_of(code: str, text: str = "") -> ErrorLine | None:
    """Give the row of an event by its code, else by its text (an exception and its message); None if unknown."""
    found = by_id().get(code)
    return _said(text) if found is None and text else found


@lru_cache(maxsize=_KEPT)
def _said(text: str) -> ErrorLine | None:
    near = (row for row in _errors() if any(needle in text for needle in row.needles))
    return next((row for row in near if row.compiled.search(text)), None)


def row_for(cause: str) -> ErrorLine | None:
    """Give the first row of a line of a cause; None where no line names it."""
    return next((row for row in lines() if row.cause == cause), None)
