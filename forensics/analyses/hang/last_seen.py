"""When each rank was last seen: its last step, its last time and its last words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import events_of
from forensics.case.last_steps import reached
from forensics.case.processes.attempts import attempts
from forensics.case.rank_spans import FEWEST_THAT_VOTE
from forensics.case.steps import parts
from forensics.knowledge.doing import by_words
from forensics.knowledge.vocabulary import words_for
from forensics.patterns import having
from forensics.stats.spread import median_of
from forensics.store.run import Run, derived
from forensics.values import replace

#: The cause of a row of `doing.jsonl` that names no culprit: the rank stands where it waits for others.
WAITS = "waits_in_collective"
#: Records of one store from which their distance is known.
_FEWEST = 2
_SCHEMA = {"source": pl.String, "rank": pl.Int32, "step": pl.Int64, "t_ns": pl.Int64}


class Seen(Struct, frozen=True):
    """One rank's last sign of life; `words` is the last line that it printed, with its place."""

    rank: int
    step: int | None = None
    t_ns: int | None = None
    words: str = ""
    source: str = ""
    line: int | None = None


class Pace(Struct, frozen=True):
    """The last record of one rank, where it is, and how many steps its records are apart (median)."""

    last: int
    every: float
    source: str
    line: int | None = None
    t_ns: int | None = None


@derived
def paces(run: Run) -> Mapping[int, Pace]:
    """Give the last record of each rank that has two in one store, ranks in order."""
    found: dict[int, Pace] = {}
    for source, seen in reached(run):
        for part in parts(seen, ["rank"]):
            steps = part["step"].unique(maintain_order=True)
            rank = part["rank"][-1]
            if rank is None or len(steps) < _FEWEST:
                continue
            end = part.row(-1, named=True)
            line, t_ns = end["at"] if end["printed"] else None, end["t_ns"] if end["t_ns"] >= 0 else None
            one = Pace(end["step"], median_of(steps.diff().drop_nulls().to_list()), source, line, t_ns)
            found[rank] = max(found.get(rank, one), one, key=lambda pace: pace.last)
    return dict(sorted(found.items()))


def stopped_first(run: Run) -> tuple[int, ...]:
    """Give the ranks that lack a record which most others have; empty where they are half of the ranks or more."""
    known = paces(run)
    if len(known) < FEWEST_THAT_VOTE:
        return ()
    last = [pace.last for pace in known.values()]
    usual, lowest = median_of(last), min(last)
    behind = tuple(rank for rank, pace in known.items() if pace.last == lowest and lowest + pace.every <= usual)
    return behind if 2 * len(behind) < len(known) else ()


@derived
def last_seen(run: Run) -> Mapping[int, Seen]:
    """Give the last sign of life of each rank."""
    found: dict[int, Seen] = {}
    for row in _steps(run).iter_rows(named=True):
        rank = row["rank"]
        if rank is not None:
            old = found.get(rank, Seen(rank))
            found[rank] = replace(old, step=_later(old.step, row["step"]), t_ns=_later(old.t_ns, row["t_ns"]))
    for row in _words(run).iter_rows(named=True):
        rank = row["rank"]
        if rank is not None:
            found[rank] = _with_words(found.get(rank, Seen(rank)), row)
    return found


def stands_at(run: Run) -> int | None:
    """Give the last step that any log of a run without restarts tells: where one rank waits, all of them stand."""
    if attempts(run).judged.number > 0:
        return None
    last = _steps(run)["step"].max()
    return last if isinstance(last, int) else None


def missed(run: Run) -> tuple[int, ...]:
    """Give the ranks for which most of the others said, as their last words, that they wait."""
    spoke = {rank: by_words(seen.words) for rank, seen in last_seen(run).items() if seen.source}
    waiting = {rank for rank, said in spoke.items() if said is not None and said.cause == WAITS}
    return tuple(sorted(spoke.keys() - waiting)) if 2 * len(waiting) > len(spoke) else ()


def _with_words(old: Seen, row: Mapping[str, Any]) -> Seen:
    """Take a file's last line when it is later than the one known; a file with a clock beats one without."""
    if old.source and row["t_ns"] is None:
        return old
    t_ns = _later(old.t_ns, row["t_ns"])
    return replace(old, t_ns=t_ns, words=row["text"] or "", source=row["source"], line=row["line"])


def _later(a: int | None, b: int | None) -> int | None:
    return max((v for v in (a, b) if v is not None), default=None)


def _steps(run: Run) -> pl.DataFrame:
    """Last step and time of each source and rank, in the order printed: of a record or of a bar, whichever is later."""
    last = [
        (source, part["rank"][-1], part["step"][-1], part["t_ns"].max())
        for source, seen in reached(run)
        for part in parts(seen, ["rank"])
        if part.height
    ]
    found = pl.DataFrame(last, schema=_SCHEMA, orient="row")
    return found.with_columns(pl.col("t_ns").replace(-1, None)).sort("source", "rank")


def _words(run: Run) -> pl.DataFrame:
    rows = events_of(run, ["last_line"], ["source"]).select("source", "rank", "t_ns", "text", "line")
    about = having(rows["source"], words_for("about_a_rank"))
    return rows.filter(~pl.col("source").is_in(about)) if about else rows
