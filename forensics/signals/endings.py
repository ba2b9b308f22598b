"""How a run ended: its success and end markers, and how far its metric rows reach.

Success markers are events with the code `success`; end markers are `<dialect>.ended`. A marker that is followed by
another run in the same file (`<dialect>.started`, or steps that start again) speaks of the earlier run only.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.store.run import Run

#: Rows printed after a success marker that still belong to it (a last evaluation, a summary).
_TRAILING_STEPS = 3


@dataclass(frozen=True, slots=True)
class Mark:
    """A marker in a source."""

    source: str
    at: int
    t_ns: int | None
    code: str
    quote: str


@dataclass(frozen=True, slots=True)
class Ending:
    """Markers in order, and per source the places of its training rows.

    `steps`: one row per source, rank and record with a step: source, rank, at, step, attempt; sorted by source and at.
    """

    successes: tuple[Mark, ...]
    starts: tuple[Mark, ...]
    steps: pl.DataFrame

    def steps_after(self, source: str, at: int, rank: int | None) -> int:
        """Count the different steps that `source` logs after a place, of one rank when both sides name one."""
        rows = self.steps.filter((pl.col("source") == source) & (pl.col("at") > at))
        if rank is not None:
            rows = rows.filter(pl.col("rank").is_null() | (pl.col("rank") == rank))
        return rows["step"].n_unique() if rows.height else 0

    def success_for(self, source: str, at: int, t_ns: int | None) -> Mark | None:
        """Give the success marker that speaks of the run in which a place stands, if there is one."""
        same = [m for m in self.successes if m.source == source]
        for mark in reversed(same):
            if not self._another_run_between(source, mark.at, at):
                return mark
        if same:
            return None
        timed = [m for m in self.successes if t_ns is not None and m.t_ns is not None and m.t_ns <= t_ns]
        return timed[-1] if timed else None

    @property
    def final(self) -> Mark | None:
        """The success marker of the last run of its file, if nothing was started or trained after it."""
        for mark in reversed(self.successes):
            if not self._another_run_between(mark.source, mark.at, 1 << 62):
                return mark
        return None

    def _another_run_between(self, source: str, a: int, b: int) -> bool:
        lo, hi = min(a, b), max(a, b)
        if any(m.source == source and lo < m.at < hi for m in self.starts):
            return True
        rows = self.steps.filter((pl.col("source") == source) & (pl.col("at") > lo) & (pl.col("at") < hi))
        return a < b and rows["step"].n_unique() >= _TRAILING_STEPS


def ending_of(run: Run) -> Ending:
    """Collect the markers and the training rows of a run."""
    code = pl.col("code")
    rows = (
        run.scan("events")
        .filter((code == "success") | code.str.ends_with(".ended") | code.str.ends_with(".started"))
        .with_columns(at=pl.coalesce("line", "byte", "seq").fill_null(0))
        .sort("source", "at")
        .collect()
    )
    marks = [
        Mark(r["source"], r["at"], r["t_ns"], r["code"], r["text"] or "")
        for r in rows.select("source", "at", "t_ns", "code", "text").iter_rows(named=True)
    ]
    return Ending(
        successes=tuple(m for m in marks if not m.code.endswith(".started")),
        starts=tuple(m for m in marks if m.code.endswith(".started")),
        steps=_steps(run),
    )


def _steps(run: Run) -> pl.DataFrame:
    return (
        run.scan("metrics")
        .filter(pl.col("step").is_not_null() & ~pl.col("name").str.starts_with("eval"))
        .with_columns(at=pl.coalesce("line", "byte", "seq").fill_null(0))
        .select("source", "rank", "at", "step", "attempt")
        .unique()
        .sort("source", "at")
        .collect()
    )
