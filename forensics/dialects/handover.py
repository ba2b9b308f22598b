"""What one part of a log leaves for the others: what was begun before it and goes on behind it.

A part is read as if it were the whole log. What is counted over the whole (restarts, floods) is counted anew from what
the parts say, and their rows are put right where that changes them. Parts that nothing else separates are read as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from forensics.dialects._assemble import recent, restarts
from forensics.dialects.events import floods
from forensics.dialects.events.floods import Flood
from forensics.dialects.events.heads import MOST as MOST_HEADS
from forensics.dialects.events.tracebacks import MOST as MOST_TRACEBACKS
from forensics.io.columns import as_column

Ints = npt.NDArray[np.int64]
#: The rank of a stream whose lines name none.
NO_RANK = -1
#: Tables whose rows count restarts.
COUNTED = ("metrics", "checkpoints", "progress")


class Stream(Struct, frozen=True):
    """The metric lines of one rank: how often they began anew, and their first and last steps.

    `kind` is the kind of line that is watched; `at` the number (`seq`) of the first of them, None where there is none.
    """

    rank: int
    kind: int | None
    restarts: int
    at: int | None
    first: tuple[int, ...]
    recent: tuple[int, ...]


class Drained(Struct, frozen=True):
    """So many rows of a table that came from one dialect at once; `dialect` is its number."""

    table: str
    dialect: int
    rows: int


class Handover(Struct, frozen=True):
    """What one part says of itself.

    `heads` are how often lines of the log's head came again, `tracebacks` how many are events; `streams` are those of
    each dialect; `drained` says in which order rows were written. `ends` is false for a part that holds blanks only.
    `ranked`: rows name the rank of their stream, and no other that the file has.
    """

    heads: tuple[int, ...] = ()
    tracebacks: int = 0
    floods: tuple[Flood, ...] = ()
    streams: tuple[tuple[Stream, ...], ...] = ()
    drained: tuple[Drained, ...] = ()
    ends: bool = True
    ranked: bool = True


class Shift(Struct, frozen=True):
    """What is added to the attempts of a stream in one part: `by`, and one more from the segment `again` on."""

    by: int = 0
    again: int | None = None


#: The shift of each rank in one part, by dialect.
Shifts = Mapping[int, Mapping[int, Shift]]


class Joined(Struct, frozen=True):
    """How the rows of each part change: restarts by stream, and events that the flood takes; `left_out` by code."""

    parts: tuple[Handover, ...]
    shifts: tuple[Shifts, ...]
    taken: tuple[frozenset[tuple[str, int]], ...]
    taken_bytes: frozenset[int]
    left_out: tuple[tuple[str, int], ...]

    def changes(self, part: int, table: str) -> bool:
        """Whether rows of a table change in a part."""
        if table in COUNTED:
            every = (shift for own in self.shifts[part].values() for shift in own.values())
            return any(shift.by or shift.again is not None for shift in every)
        return table in {"events", "collectives"} and bool(self.taken[part])

    def changed(self, part: int, table: str, rows: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rows of a table in a part, from row `first` on, put right."""
        if table == "events":
            taken = pl.DataFrame(list(self.taken[part]), schema={"code": pl.String, "seq": pl.Int64}, orient="row")
            return rows.join(taken, on=["code", "seq"], how="anti", maintain_order="left")
        if table == "collectives":
            return rows.filter(~pl.col("byte").is_in(list(self.taken_bytes)))
        return rows.with_columns(attempt=pl.col("attempt") + self._added(part, table, rows, first))

    def _added(self, part: int, table: str, rows: pl.DataFrame, first: int) -> pl.Series:
        """What is added to the attempts of rows, from row `first` on, by the streams that gave them."""
        added, seqs = np.zeros(rows.height, np.int32), rows["seq"].to_numpy()
        ranks = rows["rank"].fill_null(NO_RANK).to_numpy() if "rank" in rows.columns else None
        at = -first
        for one in self.parts[part].drained:
            if one.table == table:
                here = slice(max(at, 0), max(at + one.rows, 0))
                own = self.shifts[part].get(one.dialect, {})
                for shift in set(own.values()):
                    of = [rank for rank, its in own.items() if its == shift]
                    there = True if ranks is None or len(of) == len(own) else np.isin(ranks[here], of)
                    again = False if shift.again is None else seqs[here] >= shift.again
                    added[here] += np.multiply(shift.by + np.asarray(again, np.int32), there, dtype=np.int32)
                at += one.rows
        return as_column(added)


class _Counted(Struct):
    """A stream over the parts so far."""

    kind: int | None = None
    restarts: int = 0
    recent: list[int] = field(default_factory=list[int])

    def over(self, part: Stream) -> Shift | None:
        """Go on over the next part and give what changes in it; None where it was read by another kind of line."""
        if part.at is None:
            return Shift(self.restarts)
        alone, joined = restarts(_array(part.first), []), restarts(_array(part.first), self.recent)
        if (self.kind not in (None, part.kind)) or (alone[1:] != joined[1:]).any():
            return None
        shift = Shift(self.restarts, part.at if joined[0] else None)
        self.kind = part.kind
        self.restarts += part.restarts + int(joined[0])
        self.recent = recent(self.recent, part.recent)
        return shift


def joined(parts: Sequence[Handover]) -> Joined | None:
    """Put the parts of a log together; None where its rows do not follow from theirs."""
    every = tuple(parts)
    crowded = sum(part.tracebacks for part in every) > MOST_TRACEBACKS
    if crowded or not every[-1].ends or any(sum(counts) > MOST_HEADS for counts in _columns(every)):
        return None
    shifts = _shifts(every)
    if shifts is None:
        return None
    codes = {flood.code: None for part in every for flood in part.floods}
    whole = {code: floods.joined(f for part in every for f in part.floods if f.code == code) for code in codes}
    kept = {code: {hit.seq for hit in flood.kept} for code, flood in whole.items()}
    heard = {hit.byte for flood in whole.values() for hit in flood.kept}
    gone = [[(f.code, h) for f in part.floods for h in f.kept if h.seq not in kept[f.code]] for part in every]
    return Joined(
        parts=every,
        shifts=shifts,
        taken=tuple(frozenset((code, hit.seq) for code, hit in hits) for hits in gone),
        taken_bytes=frozenset(hit.byte for hits in gone for _, hit in hits) - heard,
        left_out=tuple((code, flood.left_out) for code, flood in whole.items() if flood.left_out),
    )


def _columns(parts: Sequence[Handover]) -> list[tuple[int, ...]]:
    return list(zip(*(part.heads for part in parts), strict=False))


def _shifts(parts: Sequence[Handover]) -> tuple[Shifts, ...] | None:
    """What is added to attempts in each part; None where ranks differ, and rows do not tell which is theirs."""
    known: dict[tuple[int, int], _Counted] = {}
    found: list[Shifts] = []
    for part in parts:
        unnamed = {one.dialect for one in part.drained if one.table == "checkpoints" or not part.ranked}
        own: dict[int, dict[int, Shift]] = {}
        for dialect, streams in enumerate(part.streams):
            shifts = {one.rank: known.setdefault((dialect, one.rank), _Counted()).over(one) for one in streams}
            sure = {rank: shift for rank, shift in shifts.items() if shift is not None}
            if len(sure) < len(shifts) or (dialect in unnamed and len(set(sure.values())) > 1):
                return None
            own[dialect] = sure
        found.append(own)
    return tuple(found)


def _array(steps: Sequence[int]) -> Ints:
    return np.asarray(steps, np.int64)
