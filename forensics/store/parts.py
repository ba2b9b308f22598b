"""Files of the store, believed only after a check: a regular file in its place, whole, with the rows it should have."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from msgspec import Struct

from forensics.errors import InputError
from forensics.io.opening import inside, open_regular
from forensics.store.manifest import Manifest, Part
from forensics.store.schema import CLASSES, TABLES, value_class
from forensics.store.sink import write_part
from forensics.values import replace

#: Columns that every reader fills; rules count on them.
_FILLED = {
    "events": ("seq", "code", "text", "attrs"),
    "metrics": ("seq", "name", "raw_name", "value_class"),
    "spans": ("seq", "category", "name", "start_ns", "dur_ns"),
    "collectives": ("state", "attrs"),
    "stack_frames": ("seq", "depth", "function", "kind"),
    "facts": ("key", "value", "family"),
    "evals": ("seq", "task", "metric"),
    "checkpoints": ("seq", "kind"),
    "progress": ("seq", "label", "unit", "plan"),
}
#: Classes of a value that only its reader can know.
_TOLD_CLASSES = CLASSES[-2:]
#: `Limits.part_rows` metric rows are about 30 MB in memory; what is far above was not written by forensics.
_MOST_BYTES = 1 << 30


def content(home: Path, relative: str, most_bytes: int) -> bytes:
    """Read a file of the store at once; no link on the way is followed.

    Raises `InputError` when it is gone, unreadable, no regular file or longer than `most_bytes`.
    """
    fd, seen = open_regular(inside(home, relative))
    try:
        if seen.st_size > most_bytes:
            raise InputError(f"it is of {seen.st_size} bytes and may have {most_bytes}")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(most_bytes)
    except OSError as error:
        raise InputError(f"the disk refused to read it: {error.strerror}") from error
    finally:
        os.close(fd)


class Piece(Struct, frozen=True):
    """Rows of one source in one file: `rows` of them from row `first` on."""

    folder: str
    file: str
    part: Part
    first: int
    rows: int

    @property
    def is_whole(self) -> bool:
        """Whether the file holds nothing else."""
        return self.rows == self.part.rows


def pieces(folder: str, manifest: Manifest) -> list[list[Piece]]:
    """Where the rows of each source are, in the order of the sources; a table's rows in the order of its files."""
    found: list[list[Piece]] = [[] for _ in manifest.sources]
    waiting: dict[str, deque[Piece]] = {}
    for file, part in manifest.files():
        waiting.setdefault(part.table, deque()).append(Piece(folder, file, part, 0, part.rows))
    for own, entry in zip(found, manifest.sources, strict=True):
        for share in entry.shares:
            left = share.rows
            while left:
                free = waiting[share.table].popleft()
                taken = replace(free, rows=min(left, free.rows))
                if taken.rows < free.rows:
                    rest = replace(free, first=free.first + taken.rows, rows=free.rows - taken.rows)
                    waiting[share.table].appendleft(rest)
                own.append(taken)
                left -= taken.rows
    return found


def check(home: Path, held: Sequence[tuple[str, Piece]], *, rows: bool = True) -> None:
    """Check the file of these pieces, each with its source; they are all of its rows.

    Without `rows` its checksum says enough. Raises `InputError` when it cannot be used.
    """
    piece = held[0][1]
    data = whole(home, piece)
    if rows:
        _check_rows(data, piece.part, held)


def whole(home: Path, piece: Piece) -> bytes:
    """Read the file of a piece; raises `InputError` when it differs from its manifest."""
    part = piece.part
    data = content(home, f"{piece.folder}/{piece.file}", min(part.size_bytes, _MOST_BYTES))
    if len(data) != part.size_bytes or hashlib.sha256(data).hexdigest() != part.sha256:
        raise InputError(f"{part.table}: its checksum does not hold")
    return data


def rows_of(home: Path, piece: Piece, data: bytes | None = None) -> pl.DataFrame:
    """Give the rows of a piece; `data` is its file, where that was read before.

    Raises `InputError` when the file differs from its manifest.
    """
    return pl.read_parquet(io.BytesIO(whole(home, piece) if data is None else data)).slice(piece.first, piece.rows)


def _check_rows(data: bytes, part: Part, held: Sequence[tuple[str, Piece]]) -> None:
    """Look at every value once: a damaged page is found here and not by a rule."""
    columns = dict(TABLES[part.table])
    try:
        is_of_table = pl.read_parquet_schema(io.BytesIO(data)) == columns
        frame = pl.read_parquet(io.BytesIO(data)) if is_of_table else pl.DataFrame(schema=columns)
        is_of_sources = frame.height == part.rows and frame.filter(_odd(part.table, _sources(held))).is_empty()
    except (Exception, pl.exceptions.PanicException) as error:  # polars raises many kinds of errors for a page
        raise InputError(f"{part.table}: it is no Parquet: {type(error).__name__}") from error
    if not is_of_table or not is_of_sources:
        raise InputError(f"{part.table}: it has other {'rows' if is_of_table else 'columns'}")


def _sources(held: Sequence[tuple[str, Piece]]) -> pl.Series:
    runs = pl.DataFrame({"source": [name for name, _ in held], "rows": [piece.rows for _, piece in held]})
    return runs.select(pl.col("source").repeat_by("rows").explode())["source"]


def _odd(table: str, sources: pl.Series) -> pl.Expr:
    """Rows that no reader of these sources can have given."""
    odd = pl.col("source").ne_missing(sources)
    for column in _FILLED.get(table, ()):
        odd |= pl.col(column).is_null()
    if table == "metrics":
        odd |= (pl.col("value_class") != value_class(pl.col("value"))) & ~pl.col("value_class").is_in(_TOLD_CLASSES)
    return odd


def link(home: Path, relative: str, target: Path) -> None:
    """Give a file of the store a second name, or a copy.

    Raises `InputError` when it is gone; `OSError` when the place cannot be written to.
    """
    try:
        os.link(home / relative, target, follow_symlinks=False)
    except OSError:  # another file system, or another owner
        fd, _ = open_regular(inside(home, relative))
        with os.fdopen(fd, "rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy)


def written(frame: pl.DataFrame, path: Path, table: str) -> Part:
    """Write rows of a table as a file, and describe it; raises `PlaceError` when the place cannot be written to."""
    write_part(frame, path)
    return of_file(path, table, frame.height)


def of_file(path: Path, table: str, rows: int) -> Part:
    """Describe a file that was just written."""
    with path.open("rb") as file:
        return Part(table, rows, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def scanned(folder: Path, manifest: Manifest) -> Iterator[tuple[str, pl.LazyFrame]]:
    """Give the tables of a folder lazily, a file at a time."""
    for file, part in manifest.files():
        yield part.table, scanned_file(folder / file)


def scanned_file(path: Path) -> pl.LazyFrame:
    """Give the rows of one file lazily."""
    return pl.scan_parquet(path, glob=False)
