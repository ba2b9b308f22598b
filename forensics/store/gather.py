"""Joins the sinks of all sources to one run: concatenated frames, with tables of coverage and losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from forensics.model import Coverage, FileCoverage, FileStatus, Issue, Source
from forensics.store.packed import Packed, stacked
from forensics.store.run import Run
from forensics.store.schema import TABLES, conform
from forensics.store.sink import Raw, settled
from forensics.values import field_names


def sources_frame(files: Iterable[FileCoverage], sources: Mapping[str, Source]) -> pl.DataFrame:
    """One row per file: its format, and how much of it was understood."""
    every = list(files)
    found = [sources.get(f.source) for f in every]
    columns = {
        "source": [f.source for f in every],
        "path": [f.source for f in every],
        "format": [f.format for f in every],
        "ingester": [f.ingester for f in every],
        "size": [f.size_bytes for f in every],
        "read": [f.read_bytes for f in every],
        "records": [f.records for f in every],
        "status": [f.status.value for f in every],
        "reason": [f.reason for f in every],
        **{name: [getattr(source, name, None) for source in found] for name in ("mtime_ns", "rank", "attempt")},
    }
    return _frame("sources", columns)


def issues_frame(issues: Iterable[Issue]) -> pl.DataFrame:
    """One row per loss."""
    every = list(issues)
    return _frame("issues", {name: [getattr(issue, name) for issue in every] for name in field_names(Issue)})


#: The rows of one source: of a part on disk, or in memory as they are, packed or not finished yet.
Given = pl.LazyFrame | pl.DataFrame | Packed | Raw
#: So many frames wait before they become one: a frame of five rows costs 20 kB and a plan of its own in every query.
_BATCH_FRAMES = 256
#: So many rows are finished at once, whatever the number of frames: 14 MB of metrics.
_BATCH_ROWS = 100_000
#: A text of so many bytes a row, so often repeated, is looked at once more: most columns hold tens of bytes a row.
_LONG_BYTES, _REPEATED = 256, 4


class Rows:
    """The rows of one table, as sources give them: in memory they are few large frames, whatever the number of files.

    What is added belongs to this object: it is packed, and emptied once it is joined.
    """

    __slots__ = ("_held", "_parts", "_table", "_waiting", "_waiting_rows")

    def __init__(self, table: str) -> None:
        """Start empty."""
        self._table = table
        self._held: list[pl.DataFrame | Packed] = []
        self._waiting: list[pl.DataFrame | Packed | Raw] = []
        self._waiting_rows = 0
        self._parts: list[pl.LazyFrame | pl.DataFrame | Packed] = []

    def add(self, frame: Given) -> None:
        """Add the rows of one more source behind the others; a lazy frame is a part on disk and stays there."""
        if isinstance(frame, pl.LazyFrame):
            self._settle()
            self._parts.append(frame)
            return
        self._waiting.append(frame)
        self._waiting_rows += (frame.frame if isinstance(frame, Raw) else frame).height
        if len(self._waiting) >= _BATCH_FRAMES or self._waiting_rows >= _BATCH_ROWS:
            self._held.append(self._joined())

    def whole(self) -> pl.LazyFrame | pl.DataFrame | Packed:
        """Give all rows in the order in which they came: a packed frame where all are in memory."""
        self._settle()
        if len(self._parts) == 1:
            return self._parts[0]
        return pl.concat([part.lazy() for part in self._parts])

    def _settle(self) -> None:
        if self._waiting:
            self._held.append(self._joined())
        if self._held:
            self._parts.append(stacked(self._table, self._held))
            self._held = []

    def _joined(self) -> pl.DataFrame | Packed:
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        rows = settled(self._table, waiting)
        return stacked(self._table, [shared(one) if isinstance(one, pl.DataFrame) else one for one in rows])


def shared(frame: pl.DataFrame) -> pl.DataFrame:
    """Give the same rows, in which a long text that many rows repeat is held once.

    The ranks of a group are named in each of its collectives: in dumps of 4,096 ranks, 20 kB in each of 86,000 rows.
    """
    for column in frame:
        if column.dtype != pl.String or column.estimated_size() < _LONG_BYTES * max(frame.height, 1):
            continue
        numbered = pl.DataFrame({"text": column}).with_row_index("at")
        first = numbered.select(pl.col("at").first().over("text")).to_series()
        firsts = first.unique(maintain_order=True)
        if firsts.len() * _REPEATED <= frame.height:
            values = pl.Series(column.name, column.gather(firsts).to_list(), pl.String)  # copied: a slice keeps all
            numbers = first.replace_strict(firsts, pl.Series(range(firsts.len())))
            frame = frame.with_columns(values.gather(numbers))
    return frame


def run_from(name: str, tables: Mapping[str, Rows]) -> Run:
    """Give the run whose tables these are."""
    whole = {table: rows.whole() for table, rows in tables.items()}
    held = {table: rows for table, rows in whole.items() if isinstance(rows, Packed)}
    return Run(name, {table: rows.lazy() for table, rows in whole.items()}, held=held)


def stored_coverage(run: Run) -> Coverage:
    """Read the account of the files back from their table."""
    files = tuple(
        FileCoverage(
            source=r["source"],
            size_bytes=r["size"],
            read_bytes=r["read"],
            skipped_bytes=r["size"] - r["read"],
            status=FileStatus(r["status"]),
            ingester=r["ingester"] or "",
            reason=r["reason"] or "",
            records=r["records"] or 0,
            format=r["format"] or "",
        )
        for r in run.collect("sources").iter_rows(named=True)
    )
    return Coverage(files)


def issues_of(run: Run) -> tuple[Issue, ...]:
    """Read the issues back from their table."""
    return tuple(
        Issue(r["source"], r["code"], r["message"], r["byte"] or 0, r["line"], r["count"] or 1)
        for r in run.collect("issues").iter_rows(named=True)
    )


def _frame(table: str, columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    known = TABLES[table]
    return conform(table, pl.DataFrame({n: pl.Series(n, v, dtype=known[n]) for n, v in columns.items()}))
