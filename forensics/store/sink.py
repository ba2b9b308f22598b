"""The sink that an ingester writes one source to: frames in memory, or Parquet parts once they grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.errors import PlaceError, errno_of
from forensics.formats.rows.secrets import without_forms
from forensics.io.budget import TEXT_CHARS, Budget
from forensics.io.disk import Lost
from forensics.io.limits import DEFAULT, Limits
from forensics.model import FileCoverage, FileStatus, Issue, Source
from forensics.store._masking import without_secrets
from forensics.store.packed import FEWEST_ROWS as FEWEST_PACKED
from forensics.store.packed import Packed, pack
from forensics.store.schema import TABLES, conform

#: zstd level 1 writes twice as fast as 3 and is 5 % larger on metric rows; reading is the same.
COMPRESSION_LEVEL = 1
#: A frame of its own costs 3 ms whatever it holds: fewer rows wait for more, so that 1,400 single ones are one frame.
FEWEST_ROWS = 1_000
#: Rows of one table and one hand-over that wait for other files' rows: 1.4 MB of metrics.
_WAITING_ROWS = 10_000
#: Fewer texts are measured one by one.
_FEW = 500
WORK_ISSUE = "work-exceeds-its-size"
WORK_REASON = "its work exceeds its size"


class Raw(Struct, frozen=True):
    """Rows as a reader gave them, with their source: their types are not those of the table yet, and secrets stand."""

    frame: pl.DataFrame

    def may_wait(self, table: str) -> bool:
        """Whether nothing can fail any more."""
        known = TABLES[table]
        return all(
            name in known and (dtype == known[name] or dtype == pl.Null or (known[name], dtype) == (pl.Int32, pl.Int64))
            for name, dtype in self.frame.schema.items()
        )

    def finished(self, table: str) -> pl.DataFrame:
        """Give the rows with the types of their table, without secrets."""
        return without_secrets(table, conform(table, self.frame))


def settled(table: str, frames: Iterable[pl.DataFrame | Packed | Raw]) -> Iterator[pl.DataFrame | Packed]:
    """Finish the rows of neighbours together: a frame of few rows costs as much as one of a thousand."""
    for are_raw, group in groupby(frames, lambda one: isinstance(one, Raw)):
        if are_raw:
            joined = pl.concat([one.frame for one in group if isinstance(one, Raw)], how="diagonal_relaxed")
            yield Raw(joined).finished(table)
        else:
            yield from (one for one in group if not isinstance(one, Raw))


class SourceSink:
    """Collects the rows of one ingester about one source; implements `ingest._out.Out`.

    With `folder`, a table that reaches `limits.part_rows` is written there as `<table>-<n>.parquet`; without, all stays
    in memory. Rows are charged to `budget`, the budget of the opened file.
    """

    def __init__(
        self,
        source: Source,
        limits: Limits = DEFAULT,
        *,
        folder: Path | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Start empty."""
        self.source = source
        self.limits = limits
        self.folder = folder
        self.budget = budget if budget is not None else Budget(source.size_bytes, limits)
        self.variant = ""
        self.issues: list[Issue] = []
        self.parts: list[tuple[str, Path, int]] = []
        self._frames: dict[str, list[pl.DataFrame | Packed | Raw]] = {}
        self._waiting: dict[str, dict[str, list[Any]]] = {}
        self._buffered: dict[str, int] = {}
        self._read = self._skipped = self._records = 0
        self._read_by_rows = 0
        self._reasons: dict[str, int] = {}

    def rows(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        """Add rows, given as columns; `source` is filled in and missing columns become null.

        Raises `WorkExceeded` when the budget of the file ends in them; the rows that fit are kept.
        """
        height = columns.height if isinstance(columns, pl.DataFrame) else max(map(len, columns.values()), default=0)
        fitting = self.budget.fitting(height, lambda rows: _cells(columns, rows))
        if fitting:
            self._add(table, columns if fitting == height else _first(columns, fitting))
            self._read_by_rows = self._read
        if fitting < height:
            self.budget.end(self.budget.ended)

    def _add(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        """Make a frame of the rows; a few rows wait for others with the same columns."""
        if isinstance(columns, pl.DataFrame) or max(map(len, columns.values())) >= FEWEST_ROWS:
            self.settle(table)
            self._convert(table, columns)
            return
        if table in self._waiting and self._waiting[table].keys() != columns.keys():
            self.settle(table)
        waiting = self._waiting.get(table)
        if waiting is None:
            self._waiting[table] = {name: list(values) for name, values in columns.items()}
        else:
            for name, values in columns.items():
                waiting[name] += values
            if max(map(len, waiting.values())) >= FEWEST_ROWS:
                self.settle(table)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Tables of which a few rows wait to become a frame; they are no rows of the source until `settle`."""
        return tuple(self._waiting)

    def settle(self, table: str) -> None:
        """Make a frame of the waiting rows of a table; values that do not fit their columns raise."""
        if (waiting := self._waiting.pop(table, None)) is not None:
            self._convert(table, waiting)

    def _convert(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        if isinstance(columns, pl.DataFrame):
            frame = columns
        else:
            known = TABLES[table]
            frame = pl.DataFrame([pl.Series(n, v, dtype=known.get(n), strict=False) for n, v in columns.items()])
        source = pl.Series("source", [self.source.path], dtype=pl.String).new_from_index(0, frame.height)
        raw = Raw(frame.hstack([source]))
        if self.folder is None and frame.height < _WAITING_ROWS and raw.may_wait(table):
            self._frames.setdefault(table, []).append(raw)
            return
        frame = raw.finished(table)
        large = self.folder is None and frame.height >= FEWEST_PACKED
        self._frames.setdefault(table, []).append(pack(table, frame) if large else frame)
        self._buffered[table] = self._buffered.get(table, 0) + frame.height
        if self.folder is not None and self._buffered[table] >= self.limits.part_rows:
            self._flush(table)

    def issue(self, code: str, message: str, *, byte: int = 0, line: int | None = None, count: int = 1) -> None:
        """State a loss; beyond `limits.issues` the last row counts the rest."""
        if len(self.issues) < self.limits.issues:
            self.issues.append(Issue(self.source.path, code, without_forms(message), byte, line, count))
        else:
            last = self.issues[-1]
            self.issues[-1] = Issue(
                last.source, "more-issues", "further issues of this file", byte, line, last.count + count
            )

    def account(self, *, read_bytes: int = 0, skipped_bytes: int = 0, reason: str = "", records: int = 0) -> None:
        """Add to the account of bytes on disk."""
        self._read += read_bytes
        self._skipped += skipped_bytes
        self._records += records
        if reason:
            self._reasons[reason] = self._reasons.get(reason, 0) + skipped_bytes

    def settle_work(self) -> None:
        """State the end of the budget, when it has one: bytes without an account are skipped for that reason."""
        budget = self.budget
        if not budget.ended:
            return
        asked = f"{budget.ended:,} units of work are asked for by {budget.size_bytes:,} bytes"
        self.issue(WORK_ISSUE, f"{asked}, {budget.limit:,} are allowed; what was read until then is kept")
        left = self.source.size_bytes - self._read - self._skipped
        if left > 0:
            self._read += min(max(budget.reached_bytes - self._read - self._skipped, 0), left - 1)
        elif not self._skipped:  # the reader took its part for the whole
            self._read = max(self.source.size_bytes - 1, 0)
        lost = max(self.source.size_bytes - self._read - self._skipped, 0)
        self.account(skipped_bytes=lost, reason=WORK_REASON)

    def format(self, name: str) -> None:
        """Name the variant that was recognised."""
        self.variant = name

    def coverage(self, ingester: str, *, failed: str = "", lost: Lost | None = None) -> FileCoverage:
        """Balance the account: read + skipped is the size of the file, the unaccounted is skipped and says so.

        `failed` is why the reader failed: then only bytes count as read whose rows were handed over. From `lost` on the
        file could not be read. Of both the file is never `read`, whatever the reader accounted for.
        """
        size = self.source.size_bytes
        read = min(self._read, size, lost.byte if lost else size)
        if failed:
            read = min(read, self._read_by_rows)
            read = read if read < size else 0  # accounted for before it was looked at: nothing of it is proven
        skipped = size - read
        reasons = dict.fromkeys(filter(None, (failed, lost.why if lost else "")), 0) | self._reasons
        unexplained = skipped - sum(reasons.values())
        if unexplained > 0 and not failed and not lost:
            reasons["not accounted for"] = unexplained
        broken = bool(failed or lost)
        incomplete = FileStatus.PARTIAL if read or broken else FileStatus.SKIPPED
        status = FileStatus.READ if skipped == 0 and not broken else incomplete
        return FileCoverage(
            source=self.source.path,
            size_bytes=size,
            read_bytes=read,
            skipped_bytes=skipped,
            status=status,
            ingester=ingester,
            reason="; ".join(reasons),
            records=self._records,
            format=self.variant,
        )

    def frames(self) -> dict[str, pl.DataFrame]:
        """Give the rows still in memory, one frame per table."""
        for table in self.waiting:
            self.settle(table)
        return {
            table: pl.concat(one.lazy().collect() for one in settled(table, frames))
            for table, frames in self._frames.items()
            if frames
        }

    def handed_over(self) -> Iterator[tuple[str, pl.DataFrame | Packed | Raw]]:
        """Give away the rows still in memory, in order within a table; large frames are packed, small ones raw."""
        for table in self.waiting:
            self.settle(table)
        for table in list(self._frames):
            yield from ((table, frame) for frame in self._frames.pop(table))

    def _flush(self, table: str) -> None:
        frames = self._frames.pop(table, [])
        self._buffered[table] = 0
        if not frames or self.folder is None:
            return
        number = sum(1 for name, _, _ in self.parts if name == table)
        path = self.folder / f"{table}-{number:04d}.parquet"
        frame = pl.concat(one for one in settled(table, frames) if isinstance(one, pl.DataFrame))
        write_part(frame, path)
        self.parts.append((table, path, frame.height))


def write_part(frame: pl.DataFrame, path: Path) -> None:
    """Write rows of a table as a file of the store; raises `PlaceError` when the place cannot be written to."""
    try:
        frame.write_parquet(path, compression="zstd", compression_level=COMPRESSION_LEVEL, statistics=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        if errno_of(error) is None:
            raise
        raise PlaceError(f"the store in {path.parent}", error) from error


def _first(columns: Mapping[str, Sequence[Any]] | pl.DataFrame, rows: int) -> Mapping[str, Any] | pl.DataFrame:
    if isinstance(columns, pl.DataFrame):
        return columns.head(rows)
    return {name: values[:rows] for name, values in columns.items()}


def _cells(columns: Mapping[str, Sequence[Any]] | pl.DataFrame, rows: int) -> int:
    """Cells of the first rows, with text by its length."""
    if isinstance(columns, pl.DataFrame):
        texts = [one for one in columns.head(rows) if one.dtype == pl.String and one.null_count() < rows]
        return rows * columns.width + sum(map(_bytes, texts)) // TEXT_CHARS
    chars = sum(_chars(values, rows) for values in columns.values())
    return rows * len(columns) + chars // TEXT_CHARS


def _bytes(texts: pl.Series) -> int:
    """Bytes of all texts; a query costs 70 µs, and a text in Python 0.1."""
    if len(texts) < _FEW:
        return len("".join(filter(None, texts.to_list())).encode())
    return int(texts.str.len_bytes().sum())


def _chars(values: Sequence[Any], rows: int) -> int:
    return sum(len(one) for one in islice(values, rows) if isinstance(one, str)) if values.__class__ is not range else 0
