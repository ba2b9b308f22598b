"""How a run ended: its success and end markers, and how far its metric rows reach.

Success markers are events with the code `success`; end markers are `<dialect>.ended`. A marker that is followed by
another run in the same file (`<dialect>.started`, or steps that start again) speaks of the earlier run only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
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
    line: int | None = None
    byte: int | None = None


@dataclass(frozen=True, slots=True)
class Steps:
    """Training records of one source in order: places, steps and ranks, of equal length."""

    at: tuple[int, ...] = ()
    step: tuple[int, ...] = ()
    rank: tuple[int | None, ...] = ()

    def at_least(self, count: int, *, after: int, before: int | None = None, rank: int | None = None) -> bool:
        """Tell whether so many different steps stand between two places, of one rank where both sides name one."""
        seen: set[int] = set()
        stop = len(self.at) if before is None else bisect_left(self.at, before)
        for i in range(bisect_right(self.at, after), stop):
            if rank is None or self.rank[i] is None or self.rank[i] == rank:
                seen.add(self.step[i])
                if len(seen) >= count:
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Ending:
    """Success and start markers in order, and the training records of each source."""

    successes: tuple[Mark, ...]
    starts: tuple[Mark, ...]
    steps: Mapping[str, Steps]

    def steps_of(self, source: str) -> Steps:
        """Give the training records of a source, none when it has none."""
        return self.steps.get(source, Steps())

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
            if not self._another_run_between(mark.source, mark.at, None):
                return mark
        return None

    def _another_run_between(self, source: str, a: int, b: int | None) -> bool:
        lo, hi = (a, b) if b is None or a < b else (b, a)
        if any(m.source == source and lo < m.at and (hi is None or m.at < hi) for m in self.starts):
            return True
        return (b is None or a < b) and self.steps_of(source).at_least(_TRAILING_STEPS, after=lo, before=hi)


def ending_of(run: Run) -> Ending:
    """Collect the markers and the training rows of a run."""
    return run.derived(_ending_of)


def _ending_of(run: Run) -> Ending:
    code = pl.col("code")
    rows = (
        run.scan("events")
        .filter((code == "success") | code.str.ends_with(".ended") | code.str.ends_with(".started"))
        .with_columns(at=pl.coalesce("line", "byte", "seq").fill_null(0))
        .sort("source", "at")
        .collect()
    )
    marks = [
        Mark(r["source"], r["at"], r["t_ns"], r["code"], r["text"] or "", r["line"], r["byte"])
        for r in rows.iter_rows(named=True)
    ]
    return Ending(
        successes=tuple(m for m in marks if not m.code.endswith(".started")),
        starts=tuple(m for m in marks if m.code.endswith(".started")),
        steps=_steps(run),
    )


def _steps(run: Run) -> dict[str, Steps]:
    rows = (
        run.scan("metrics")
        .filter(pl.col("step").is_not_null() & ~pl.col("name").str.starts_with("eval"))
        .with_columns(at=pl.coalesce("line", "byte", "seq").fill_null(0))
        .select("source", "rank", "at", "step")
        .unique()
        .sort("source", "at")
        .collect()
    )
    return {
        str(source): Steps(tuple(part["at"].to_list()), tuple(part["step"].to_list()), tuple(part["rank"].to_list()))
        for (source,), part in rows.group_by("source", maintain_order=True)
    }
