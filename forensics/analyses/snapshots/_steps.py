"""Where the steps of a recording begin: as the program told, by its rounds, or by work that comes again and again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

import polars as pl
from msgspec import Struct

from forensics.analyses.snapshots._events import Accounts
from forensics.analyses.snapshots._stacks import Known, Phase

#: Work that comes again: so many times at least, freed each time but for a few, in so many tenths of the recording.
_TIMES, _FREED, _TENTHS = 5, 0.9, 9
#: Of what a recording of plain repetition allocates, the share that may stay: layers of one forward pass leave more.
_STAYS = 0.1


class Steps(Struct, frozen=True):
    """Where the steps of a recording begin, as seqs of events, and whether the program itself said so.

    `whole` is whether a step is one of training; else it is a repetition of some work, as of requests.
    """

    begins: tuple[int, ...]
    told: bool
    whole: bool = True

    @property
    def count(self) -> int:
        """How many steps."""
        return len(self.begins)

    def of(self, seq: int) -> int:
        """The step that an event belongs to, 0-based; -1 before the first."""
        return bisect_right(self.begins, seq) - 1


def steps_of(books: Accounts, annotations: pl.DataFrame, known: Mapping[int, Known]) -> Steps:
    """Find the steps: by the program's annotations, else by rounds of forward, backward and optimizer, else by work.

    Annotations of optimizer steps are preferred to the profiler's.
    """
    told = annotations.filter(
        (pl.col("stage") == "START")
        & (pl.col("name").str.contains("Optimizer.step", literal=True) | pl.col("name").str.starts_with("ProfilerStep"))
        & pl.col("t_ns").is_not_null()
    )
    kinds = told["name"].str.contains("Optimizer.step", literal=True)
    marks = told.filter(kinds) if kinds.any() else told
    times = books.events.filter(pl.col("t_ns").is_not_null()).select("seq", "t_ns")
    marks = marks.filter(pl.col("t_ns") >= times["t_ns"][0]) if times.height else marks.clear()
    if marks.height:
        at = times["t_ns"].search_sorted(marks["t_ns"].sort(), side="left").clip(upper_bound=times.height - 1)
        return Steps(tuple(times["seq"].gather(at).to_list()), told=True)
    rounds = _rounds(books, known)
    return Steps(rounds, told=False) if rounds else Steps(_repetitions(books), told=False, whole=False)


def _rounds(books: Accounts, known: Mapping[int, Known]) -> tuple[int, ...]:
    """Seqs at which a whole round begins: forward, then an optimizer's stack, or a backward one where none is of it."""
    phases = {stack: one.phase.value for stack, one in known.items()}
    if not phases or books.events.height == 0:
        return ()
    column = books.events.select(
        "seq", phase=pl.col("stack").replace_strict(phases, default=Phase.OTHER.value, return_dtype=pl.String)
    ).filter(pl.col("phase") != Phase.OTHER.value)
    changes = column.filter((pl.col("phase") != pl.col("phase").shift(1)).fill_null(value=True))
    seen = set(changes["phase"])
    ends = Phase.OPTIMIZER.value if changes.filter(pl.col("phase") == Phase.OPTIMIZER.value).height > 1 else None
    ends = ends or (Phase.BACKWARD.value if Phase.BACKWARD.value in seen else None)
    if ends is None or Phase.FORWARD.value not in seen:
        return ()
    begins, begin = list[int](), None
    for seq, phase in changes.iter_rows():
        if phase == ends and begin is not None:
            begins.append(begin)
            begin = None
        elif phase == Phase.FORWARD.value and begin is None:
            begin = seq
    return tuple(begins)


def _repetitions(books: Accounts) -> tuple[int, ...]:
    """Seqs of the rarest allocation that comes again over the whole recording and is freed each time."""
    if books.events.height == 0:
        return ()
    first, last = int(books.events["seq"][0]), int(books.events["seq"][-1])
    stays = pl.col("end").is_null()
    total, left = books.lives.select(pl.col("size").sum(), left=pl.col("size").filter(stays).sum()).row(0)
    if left > _STAYS * total:
        return ()
    tenth = (pl.col("seq") - first) * 10 // max(last - first + 1, 1)
    found = (
        books.lives.filter(pl.col("stack").is_not_null())
        .group_by("stack")
        .agg(times=pl.len(), freed=stays.not_().mean(), tenths=tenth.n_unique(), begin=pl.col("seq").min())
        .filter((pl.col("times") >= _TIMES) & (pl.col("freed") >= _FREED) & (pl.col("tenths") >= _TENTHS))
        .sort("times", "begin")
    )
    if found.height == 0:
        return ()
    return tuple(books.lives.filter(pl.col("stack") == found["stack"][0])["seq"].sort().to_list())
