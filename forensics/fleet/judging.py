"""The unit of work of a fleet: some runs in, what is said of each out, whoever asks and however often.

`judge` depends on its task and on what the runs hold alone, so it may run in any process of any machine that sees them.
A run that is gone, or on which the judging fails, costs its own answer. `answers` asks for all runs of a fleet, on the
engine that was asked for, and gives them in the order in which they were asked.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import polars as pl
from msgspec import Struct

from forensics import pipeline
from forensics.case.identities import Identities, identities_of
from forensics.case.runs import only, split
from forensics.config import Config
from forensics.errors import PlaceError, UsageError
from forensics.fleet.members import Member
from forensics.history.past import Past, past_of
from forensics.io.places.place import Place
from forensics.io.safe_text import printable
from forensics.model import UNREADABLE, Coverage, Figure, Issue, Outcome, Report, Source, Verdict
from forensics.scale import wire
from forensics.scale.choice import Spread
from forensics.store.disk import Lost, one_by_one
from forensics.store.fill import skipped
from forensics.store.run import Run
from forensics.store.unit import address
from forensics.values import replace

#: Code of the issue that says that a run could not be judged.
NOT_JUDGED = "run-not-judged"
#: So many small runs, or bytes of them, are one task of a cluster, which each costs some ms, or of a machine that reads
#: baselines for each task. Else each run is one: to pass it to another process takes 0.4 of some 130 ms.
_TASK_RUNS, _TASK_BYTES = 8, 16 << 20
_MOST_CHARS = 300


class Named(Struct, frozen=True):
    """A run by what the user calls it, by where every process finds it, and the bytes that it holds."""

    name: str
    address: str
    size_bytes: int = 0


class How(Struct, frozen=True):
    """How runs are read and judged, and what is wanted of them beside the report.

    `store` is the folder of their tables, nothing for memory; `bases` are runs to compare with; `keeps`
    asks for what a history keeps.
    """

    settings: Config
    store: str = ""
    bases: tuple[Named, ...] = ()
    figures: bool = False
    redact: bool = False
    keeps: bool = False


class Task(Struct, frozen=True):
    """Some runs to judge."""

    runs: tuple[Named, ...]
    how: How

    @property
    def size_bytes(self) -> int:
        """Bytes of the largest of the runs, as each is let go before the next."""
        return max(run.size_bytes for run in self.runs)

    def alone(self) -> tuple[Task, ...]:
        """Give a task for each of the runs."""
        return tuple(replace(self, runs=(run,)) for run in self.runs)


class Drawn(Struct, frozen=True):
    """A figure as JSON, by the name of its kind."""

    kind: str
    figure: str


@cache
def _kinds() -> Mapping[str, type[Figure]]:
    from forensics import figure  # noqa: PLC0415 - only a page draws, and its classes take time to make

    return {
        kind.__name__: kind for kind in vars(figure).values() if isinstance(kind, type) and issubclass(kind, Figure)
    }


class Answer(Struct, frozen=True):
    """The report of one run, without its figures; what a history keeps of it; the names that are to be hidden."""

    report: Report
    past: Past | None = None
    drawn: tuple[Drawn, ...] = ()
    names: tuple[Identities, ...] = ()

    @property
    def whole(self) -> Report:
        """The report with its figures."""
        if not self.drawn:
            return self.report
        figures = (wire.unpacked(one.figure.encode(), _kinds()[one.kind]) for one in self.drawn)
        return replace(self.report, figures=tuple(figures))


class Judged(Struct, frozen=True):
    """The answer on one folder, which may hold several runs.

    `refused` says why it could not be read, `failed` why it could not be judged.
    """

    answers: tuple[Answer, ...] = ()
    refused: str = ""
    failed: str = ""


class Record(Struct, frozen=True):
    """What became of a task: something for each of its runs, in their order."""

    judged: tuple[Judged, ...]


def tasks(members: Iterable[Member], how: How, *, alone: bool = False) -> list[Task]:
    """Divide runs into tasks, in their order; small ones are judged by one process, or each `alone`."""
    most = 1 if alone else _TASK_RUNS
    groups: list[list[Named]] = []
    size_bytes = _TASK_BYTES
    for member in members:
        size_bytes += member.size_bytes
        if size_bytes > _TASK_BYTES or len(groups[-1]) >= most:
            groups.append([])
            size_bytes = member.size_bytes
        groups[-1].append(replace(named(member.place), size_bytes=member.size_bytes))
    return [Task(tuple(group), how) for group in groups]


def named(place: Place) -> Named:
    """Name a place."""
    return Named(place.name, address(place))


def judge(task: Task) -> Record:
    """Read and judge the runs of a task, each let go before the next.

    Raises `PlaceError` when the machine refuses the store, or a place as a whole.
    """
    return judged(task, tuple(only(_read(base, task.how)) for base in task.how.bases))


def judged(task: Task, bases: Sequence[Run]) -> Record:
    """Do a task against runs that were read."""
    return Record(tuple(_of_member(run, task.how, bases) for run in task.runs))


def _of_member(asked: Named, how: How, bases: Sequence[Run]) -> Judged:
    try:
        return Judged(tuple(_answer(run, how, bases) for run in split(_read(asked, how))))
    except PlaceError:
        raise
    except UsageError as error:  # it is gone since the runs were listed
        return Judged(refused=error.message)
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001 - one run must not end the fleet
        notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
        return not_judged(asked, f"a fault of forensics: {type(error).__name__}: {error}{notes}")


def not_judged(run: Named, why: str) -> Judged:
    """Give the answer for a run on which the judging fails: it cannot say, and says why."""
    why = printable(why, _MOST_CHARS)
    lost = skipped(Source(".", run.size_bytes), f"{UNREADABLE}: {why}")
    verdict = Verdict(Outcome.CANNOT_SAY, f"The run could not be judged: {why}")
    report = Report(run.name, verdict, coverage=Coverage((lost,)), issues=(Issue(".", NOT_JUDGED, why),))
    return Judged((Answer(report),), failed=why)


def _read(asked: Named, how: How) -> Run:
    read = pipeline.ingest_run(asked.address, store=Path(how.store) if how.store else None)
    return pipeline.configured(replace(read, name=asked.name), how.settings)


def _answer(run: Run, how: How, bases: Sequence[Run]) -> Answer:
    if bases:
        from forensics.compare.baseline import against  # noqa: PLC0415 - its statistics take time to load

        run = against(run, *bases)
    report = pipeline.report_of(run, how.settings)
    return Answer(
        report,
        past_of(run, report, time.time_ns()) if how.keeps else None,
        tuple(map(_drawn, pipeline.with_figures(run, report).figures)) if how.figures else (),
        tuple(identities_of(one) for one in (run, *bases)) if how.redact else (),
    )


def _drawn(one: Figure) -> Drawn:
    return Drawn(type(one).__name__, wire.packed(one).decode("ascii"))


def answers(
    members: Sequence[Member], how: How, spread: Spread, bases: Sequence[Run], keep: Callable[[Sequence[Past]], None]
) -> Iterator[tuple[Member, Judged]]:
    """Judge runs, wherever that is done; a run that ends its process twice costs its own answer.

    `bases` are the runs `how.bases`, as they were read here; other processes read them again. What a history keeps of a
    task is handed to `keep` when it is done, however long answers wait for those of runs before them. Raises
    `MissingPackage` when the engine's package is not installed; `PlaceError` when a machine refuses the store, or a
    place as a whole.
    """
    sizes_bytes = [member.size_bytes for member in members]
    is_alone = spread.is_alone(sizes_bytes)
    every = tasks(members, how, alone=is_alone or not (spread.is_remote or how.bases))
    if is_alone:
        outcomes = one_by_one(lambda task: judged(task, bases), every)
    else:
        outcomes = spread.runs(judge, every, sizes_bytes)
    waiting: dict[str, Judged] = {}
    left = deque(zip(members, (run.address for task in every for run in task.runs), strict=True))
    for outcome in outcomes:
        said = dict(_said(outcome))
        keep([answer.past for judged in said.values() for answer in judged.answers if answer.past is not None])
        waiting |= said
        while left and left[0][1] in waiting:
            member, address = left.popleft()
            yield member, waiting.pop(address)


def _said(outcome: tuple[Task, Record] | Lost[Task]) -> Iterator[tuple[str, Judged]]:
    if isinstance(outcome, Lost):
        return ((run.address, not_judged(run, outcome.why)) for run in outcome.item.runs)
    task, record = outcome
    return zip((run.address for run in task.runs), record.judged, strict=True)
