"""Marks in the stores of a run: success and end markers, training records, and the last line of each log.

Success markers are events that tell so; end markers are `<dialect>.ended`. A marker that is followed by another run in
the same file (`<dialect>.started`, or steps that start again) belongs to the earlier run only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import ending_with, events_of
from forensics.case.series import metric_rows, of_each_source, record_pieces
from forensics.case.steps import in_file, rises
from forensics.knowledge.errors import telling
from forensics.store.run import Run, derived

#: Rows printed after a success marker that still belong to it (a last evaluation, a summary).
_TRAILING_STEPS = 3
#: A log's last exception may be followed by the rest of its message, and by a launcher's closing words.
CLOSING_LINES = 6
#: A rank that logs this many later steps has survived its error; fewer may be output that was still in a buffer.
SURVIVED_STEPS = 3
#: What records of one step have in common between which nothing else is printed: those of a text log differ in lines.
_OF_A_STEP = ("step", "line", "rank")


class Mark(Struct, frozen=True):
    """A marker in a source."""

    source: str
    at: int
    t_ns: int | None
    code: str
    quote: str
    line: int | None = None
    byte: int | None = None


class Steps(Struct, frozen=True):
    """Training records of one source in order: places, steps and ranks, of equal length.

    Of many records of one step that no line holds, as those of an event file, they are the first and the last.

    `ranks` are those that log steps, None where lines name none; where it is one, nobody asks for that of a record.
    """

    at: Sequence[int] = ()
    step: Sequence[int] = ()
    rank: Sequence[int | None] | pl.Series = ()
    ranks: frozenset[int | None] = frozenset()

    def at_least(self, count: int, *, after: int, before: int | None = None, rank: int | None = None) -> bool:
        """Tell whether there are so many different steps between two places, of one rank where both sides name one."""
        return len(self._some(count, after, before, rank)) >= count

    def count(self, *, before: int) -> int:
        """Count the records before a place."""
        return bisect_left(self.at, before)

    def begins_at(self, at: int) -> bool:
        """Tell whether the first record of a step is at a place."""
        i = bisect_left(self.at, at)
        here = i < len(self.at) and self.at[i] == at
        return here and (i == 0 or self.step[i] != self.step[i - 1])

    def _speaks(self, i: int, rank: int | None) -> bool:
        return rank is None or len(self.ranks) == 1 or self.rank[i] is None or self.rank[i] == rank

    def _some(self, count: int, after: int, before: int | None, rank: int | None) -> set[int]:
        """The first so many different steps between two places, or all where they are fewer."""
        seen: set[int] = set()
        if rank is not None and not self.ranks & {rank, None}:
            return seen
        for i in range(bisect_right(self.at, after), len(self.at) if before is None else bisect_left(self.at, before)):
            if self._speaks(i, rank):
                seen.add(self.step[i])
                if len(seen) >= count:
                    break
        return seen


class Marks(Struct, frozen=True):
    """Success and start markers in order, and the training records of each source."""

    successes: tuple[Mark, ...]
    starts: tuple[Mark, ...]
    steps: Mapping[str, Steps]

    def steps_of(self, source: str) -> Steps:
        """Give the training records of a source, none when it has none."""
        return self.steps.get(source, Steps())

    def success_for(self, source: str, at: int, t_ns: int | None) -> Mark | None:
        """Give the success marker of the run that contains a place, if there is one."""
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
        return next(self.finals(), None)

    def finals(self) -> Iterator[Mark]:
        """Give the success markers after which nothing was started or trained in their files, the last one first."""
        return (mark for mark in reversed(self.successes) if not self._another_run_between(mark.source, mark.at, None))

    def _another_run_between(self, source: str, a: int, b: int | None) -> bool:
        lo, hi = (a, b) if b is None or a < b else (b, a)
        if any(m.source == source and lo < m.at and (hi is None or m.at < hi) for m in self.starts):
            return True
        return (b is None or a < b) and self.steps_of(source).at_least(_TRAILING_STEPS, after=lo, before=hi)


@derived
def marks_of(run: Run) -> Marks:
    """Collect the markers and the training rows of a run."""
    begun = events_of(run, ending_with(run, ".started"))
    return Marks(_marks(ends_of(run)), _marks(begun), _steps(run))


def _marks(rows: pl.DataFrame) -> tuple[Mark, ...]:
    if rows.is_empty():
        return ()
    return tuple(
        Mark(r["source"], r["at"], r["t_ns"], r["code"], r["text"] or "", r["line"], r["byte"])
        for r in rows.with_columns(at=in_file()).sort("source", "at", maintain_order=True).iter_rows(named=True)
    )


@derived
def ends_of(run: Run) -> pl.DataFrame:
    """The events that say that training finished, those that say it as the last line of their log included."""
    at_last = telling("finished_as_last_line")
    found = events_of(run, at_last | telling("finished") | ending_with(run, ".ended"))
    if at_last.isdisjoint(found["code"]):
        return found
    lasting = pl.col("code").is_in(at_last)
    last = pl.col("source").replace_strict(last_lines(run), default=None, return_dtype=pl.Int64)
    return found.filter(~lasting | (pl.col("line") == last))


def is_end() -> pl.Expr:
    """Whether an event says that training finished, in anybody's words or in those of a trainer or a tracker."""
    code = pl.col("code")
    return code.is_in(telling("finished")) | code.str.ends_with(".ended")


def _steps(run: Run) -> dict[str, Steps]:
    """Training records by source: those with a step, or, where a source prints none, every record of a loss."""
    stepped = pl.col("step").is_not_null() & ~pl.col("evaluates")
    numbered = _placed(run, (rows.filter(stepped) for rows in record_pieces(run, inner=False)), pl.col("step"))
    others = metric_rows(run, (pl.col("name") == "loss") & ~pl.col("source").is_in([*numbered]))
    return _placed(run, [others], pl.coalesce("gstep", "seq")) | numbered


def _placed(run: Run, pieces: Iterable[pl.LazyFrame], step: pl.Expr) -> dict[str, Steps]:
    rows = (
        rows.filter(step.is_not_null()).select("source", "rank", "line", at=in_file(), step=step) for rows in pieces
    )
    return {s: _steps_of(part) for s, part in of_each_source(run, *rows, same=_OF_A_STEP, rising=("at",)).items()}


def _steps_of(part: pl.DataFrame) -> Steps:
    if not rises(part["at"]):
        part = part.unique().sort("at")
    at, step = (part[name].to_numpy().data for name in ("at", "step"))
    rank = part["rank"]
    one = rank.null_count() == len(rank) or (not rank.null_count() and rank.min() == rank.max())
    return Steps(at, step, () if one else rank, frozenset((rank.head(1) if one else rank.unique()).to_list()))


@derived
def last_lines(run: Run) -> dict[str, int]:
    """Give the number of each text log's last line."""
    rows = run.scan("events").filter((pl.col("code") == "last_line") & pl.col("line").is_not_null())
    found = rows.group_by("source").agg(pl.col("line").max()).collect()
    return {str(source): int(line) for source, line in found.iter_rows()}


def ends_the_log(source: str, line: int | None, last: Mapping[str, int]) -> bool:
    """Whether a line is among the last of its log."""
    return line is not None and source in last and last[source] - line <= CLOSING_LINES
