"""Parts of the store, believed only after a check: a regular file in its place, whole, with the rows it should have."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from forensics.errors import InputError
from forensics.io.opening import inside, open_regular
from forensics.store.manifest import Entry, Part
from forensics.store.schema import TABLES, value_class

#: Columns that every reader fills; rules count on them.
_FILLED = {
    "events": ("seq", "code", "text", "attrs"),
    "metrics": ("seq", "name", "raw_name", "value_class"),
    "spans": ("seq", "category", "name", "start_ns", "dur_ns"),
    "collectives": ("rank", "seq", "state", "attrs"),
    "stack_frames": ("rank", "seq", "depth", "function", "kind"),
    "facts": ("key", "value", "family"),
    "evals": ("seq", "task", "metric"),
    "checkpoints": ("seq", "kind"),
    "progress": ("seq", "label", "unit", "plan"),
}
#: Classes of a value that only its reader can know.
_TOLD_CLASSES = ("null-suspected-nan", "filtered-by-writer")
#: `Limits.part_rows` metric rows are about 30 MB in memory; what is far above was not written by forensics.
_MOST_BYTES = 1 << 30


def content(home: Path, relative: str, most_bytes: int) -> bytes:
    """Read a file of the store at once; no link on the way is followed.

    Raises:
        InputError: when it is gone, unreadable, no regular file or longer than `most_bytes`.
    """
    fd, seen = open_regular(inside(home, relative))
    try:
        if seen.st_size > most_bytes:
            why = f"it is of {seen.st_size} bytes and may have {most_bytes}"
            raise InputError(why)
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(most_bytes)
    except OSError as error:
        why = f"the disk refused to read it: {error.strerror}"
        raise InputError(why) from error
    finally:
        os.close(fd)


def check(home: Path, generation: str, index: int, entry: Entry) -> None:
    """Check every part of an entry.

    Raises:
        InputError: for the first that cannot be used.
    """
    for relative, part in entry.files(index):
        data = content(home, f"{generation}/{relative}", min(part.size_bytes, _MOST_BYTES))
        if len(data) != part.size_bytes or hashlib.sha256(data).hexdigest() != part.sha256:
            why = f"{part.table}: its checksum does not hold"
            raise InputError(why)
        _check_rows(data, part, entry.source)


def _check_rows(data: bytes, part: Part, source: str) -> None:
    """Look at every value once: a damaged page is found here and not by a rule."""
    columns = dict(TABLES[part.table])
    try:
        is_of_table = pl.read_parquet_schema(io.BytesIO(data)) == columns
        frame = pl.read_parquet(io.BytesIO(data)) if is_of_table else pl.DataFrame(schema=columns)
        is_of_source = frame.height == part.rows and frame.filter(_odd(part.table, source)).is_empty()
    except (Exception, pl.exceptions.PanicException) as error:  # what polars raises for a page is not one kind
        why = f"{part.table}: it is no Parquet: {type(error).__name__}"
        raise InputError(why) from error
    if not is_of_table or not is_of_source:
        why = f"{part.table}: it has other {'rows' if is_of_table else 'columns'}"
        raise InputError(why)


def _odd(table: str, source: str) -> pl.Expr:
    """Rows that no reader of this source can have given."""
    odd = pl.col("source").ne_missing(source)
    for column in _FILLED.get(table, ()):
        odd |= pl.col(column).is_null()
    if table == "metrics":
        odd |= (pl.col("value_class") != value_class(pl.col("value"))) & ~pl.col("value_class").is_in(_TOLD_CLASSES)
    return odd


def link(home: Path, files: Iterable[str], folder: Path) -> None:
    """Give files of the store a second name in `folder`, or a copy.

    Raises:
        InputError: when one is gone.
        OSError: when the place cannot be written to.
    """
    folder.mkdir()
    for relative in files:
        target = folder / relative.rsplit("/", 1)[-1]
        try:
            os.link(home / relative, target, follow_symlinks=False)
        except OSError:  # another file system, or another owner
            fd, _ = open_regular(inside(home, relative))
            with os.fdopen(fd, "rb") as source, target.open("xb") as copy:
                shutil.copyfileobj(source, copy)


def of_file(path: Path, table: str, rows: int) -> Part:
    """Describe a part that was just written."""
    with path.open("rb") as file:
        return Part(table, rows, path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def scanned(folder: Path, index: int, entry: Entry) -> dict[str, pl.LazyFrame]:
    """Give the tables of an entry, lazily."""
    by_table: dict[str, list[pl.LazyFrame]] = {}
    for relative, part in entry.files(index):
        by_table.setdefault(part.table, []).append(pl.scan_parquet(folder / relative, glob=False))
    return {table: pl.concat(frames) for table, frames in by_table.items()}
