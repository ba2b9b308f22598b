"""The interface for notebooks and scripts: judge a run, or open its tables.

Nothing here reads settings of the machine or of the folder it is called in: what is asked is what the arguments say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from forensics import model, pipeline, registry
from forensics.case.runs import only
from forensics.compare.baseline import against
from forensics.config import suggestion
from forensics.errors import UsageError
from forensics.export.frames import pandas_of
from forensics.report import text
from forensics.report.html import notebook
from forensics.report.redacted import redacted
from forensics.scale.choice import Spread
from forensics.store.run import Run
from forensics.store.schema import TABLES
from forensics.store.sql import ask
from forensics.values import field_names

if TYPE_CHECKING:
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs] # it ships none

#: A path on disk or, where a run is read, the address of one in a bucket.
Place = str | PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Report(model.Report):
    """A report that a notebook shows: its fields are those of `forensics.model.Report`.

    `print(report)` gives the verdict as `forensics triage` prints it.
    """

    def __repr__(self) -> str:
        """Say the answer in one line; the fields hold the rest."""
        shape = f" {self.verdict.shape.value}" if self.verdict.shape else ""
        return f"<Report of {self.run!r}: {self.verdict.outcome.value}{shape}: {self.verdict.headline!r}>"

    def __str__(self) -> str:
        """Give the verdict in words."""
        return "\n".join(text.render(self))

    def _repr_html_(self) -> str:
        """Give the core of the static page: escaped, without a script, nothing loaded."""
        return notebook.of_report(self)


@dataclass(frozen=True, repr=False)
class OpenRun:
    """The tables of a run that was read: `run.metrics`, `run["events"]` are polars LazyFrames.

    `tables` names those that hold something; a table that nothing wrote is an empty frame with its columns.
    """

    run: Run

    def __repr__(self) -> str:
        """Name the run and its tables."""
        return f"<Run {self.name!r}: {', '.join(self.tables)}>"

    @property
    def name(self) -> str:
        """What the run was called."""
        return self.run.name

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that something wrote, in the order of the schema."""
        return tuple(name for name in TABLES if name in self.run.frames)

    def __getitem__(self, table: str) -> pl.LazyFrame:
        """Give one table lazily; raises `UsageError` for a table that the schema does not name."""
        if table not in TABLES:
            message = f"no table {table!r}{suggestion(table, tuple(TABLES))}"
            raise UsageError(message, help=f"one of {', '.join(TABLES)}")
        return self.run.scan(table)

    def __getattr__(self, name: str) -> pl.LazyFrame:
        """Give one table lazily, as an attribute."""
        if name in TABLES:
            return self.run.scan(name)
        raise AttributeError(f"a run has no {name!r}{suggestion(name, tuple(TABLES))}")

    def __dir__(self) -> list[str]:
        """Name the tables beside the rest, for completion."""
        return sorted({*object.__dir__(self), *TABLES})

    def sql(self, question: str) -> pl.DataFrame:
        """Answer a SELECT over the tables.

        Raises `UsageError` when the SQL is wrong, or is anything but one SELECT over the tables.
        """
        return ask(self.run, question)

    def to_pandas(self, what: str | pl.LazyFrame | pl.DataFrame) -> pd.DataFrame:
        """Give a table by its name, or any frame made from one, as pandas; pyarrow is not needed.

        A NaN stays NaN and a null becomes NA; integers stay integers.
        """
        frame = self[what] if isinstance(what, str) else what
        return pandas_of(frame.collect() if isinstance(frame, pl.LazyFrame) else frame)

    def triage(self, *, ignore: Iterable[str] = (), figures: bool = True, redact: bool = False) -> Report:
        """Judge the run; `figures` are the charts that a notebook shows, `redact` hides names and tokens.

        Raises `UsageError` when the place holds several runs.
        """
        report = pipeline.report_of(only(self.run), pipeline.Defaults(_known(ignore)))
        if figures:
            report = pipeline.with_figures(self.run, report)
        if redact:
            report = redacted(report, self.run, *self.run.bases)
        return Report(**{name: getattr(report, name) for name in field_names(report)})

    def _repr_html_(self) -> str:
        """List the tables with their rows."""
        counts = {name: int(self.run.scan(name).select(pl.len()).collect().item()) for name in self.tables}
        return notebook.of_tables(self.name, {name: n for name, n in counts.items() if n})


def open_run(
    path: Place,
    *,
    baseline: Place | Sequence[Place] | None = None,
    store: Place | None = None,
    jobs: int | None = 1,
) -> OpenRun:
    """Read a run directory, a file of it, or what a bucket holds, into tables; `store` keeps them between calls.

    `baseline` is a run, or several, to compare with. `jobs` is the number of processes that read, None for as many as
    pay. Raises `UsageError` when the path does not exist, or is empty, or `jobs` is below 1.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"jobs: {jobs} is no number of processes", help="forensics.triage('RUN_DIR', jobs=2)")
    place, spread = None if store is None else Path(_given(store)), Spread(jobs)
    run = pipeline.ingest_run(_given(path), store=place, spread=spread)
    given = () if baseline is None else (baseline,) if isinstance(baseline, str | PathLike) else tuple(baseline)
    bases = [pipeline.ingest_run(_given(one), store=place, spread=spread) for one in given]
    return OpenRun(against(run, *bases) if bases else run)


def triage(  # noqa: PLR0913 - each is a question of its own, by name only
    path: Place,
    *,
    baseline: Place | Sequence[Place] | None = None,
    store: Place | None = None,
    ignore: Iterable[str] = (),
    figures: bool = True,
    redact: bool = False,
    jobs: int | None = 1,
) -> Report:
    """Read a run and say what went wrong, where it started and what proves it.

    `jobs` is the number of processes that read, None for as many as pay; it changes nothing of the report. Raises
    `UsageError` when the path does not exist or holds several runs, `ignore` names no rule, or `jobs` is below 1.
    """
    opened = open_run(path, baseline=baseline, store=store, jobs=jobs)
    return opened.triage(ignore=ignore, figures=figures, redact=redact)


def _given(place: Place) -> Place:
    """Refuse an empty place, as `Path` would take it for the working folder."""
    if not os.fspath(place):
        raise UsageError("the path is empty: is a variable not set?", help="forensics.triage('RUN_DIR')")
    return place


def _known(ignore: Iterable[str]) -> tuple[str, ...]:
    ids = tuple(rule.id for rule in registry.load("rules").rules)
    for one in (ignored := tuple(ignore)):
        if one not in ids:
            raise UsageError(f"ignore: no rule {one!r}{suggestion(one, ids)}", help="forensics rules")
    return ignored
