"""What the ingesters of SQLite databases share: finding their tables, text cells, and the account of damage.

A database is read with the write-ahead log beside it (`<name>-wal`): rows of a killed writer may be there only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from forensics.errors import InputError, NotMine
from forensics.formats.rows.out import Out
from forensics.io.reading import Opened
from forensics.io.sqlite import pages as sqlite_pages
from forensics.io.sqlite.orphans import orphans
from forensics.io.sqlite.pages import Cell, Database, Row, Table
from forensics.io.sqlite.wal import Log, Read, log_of

LOG = "-wal"
#: What the main table of each tracker is called, and columns that it has.
MAIN = "metrics"
MLFLOW = frozenset({"key", "value", "timestamp", "run_uuid"})
TRACKIO = frozenset({"timestamp", "run_name", "step", "metrics"})


def open_tables(opened: Opened, columns: frozenset[str]) -> tuple[Database, Mapping[str, Table]]:
    """Database and tables of a file whose main table has these columns; raises `NotMine` for any other content."""
    try:
        db = sqlite_pages.database(*_held(opened), log_beside(opened))
    except InputError as error:
        raise NotMine(error.message) from error
    found = sqlite_pages.tables(db)
    if MAIN not in found or not columns <= set(found[MAIN].columns):
        raise NotMine("no table of metrics with the columns of this tracker")
    return db, found


def log_beside(opened: Opened) -> Log | None:
    """The write-ahead log beside a database; None where there is none."""
    beside = opened.beside("", LOG)
    return log_of(*_held(beside)) if beside is not None else None


def _held(opened: Opened) -> tuple[Read, int]:
    """The bytes of a file by offset and count, and how many there are: as they are now, whatever a writer does."""
    data = opened.raw()
    return (lambda offset, count: data[offset : offset + count]), len(data)


def variant(name: str, runs: int, db: Database) -> str:
    """What was read, in words."""
    of_runs = f" of {runs} runs" if runs != 1 else ""
    return f"{name}{of_runs}{' with its write-ahead log' if db.log.pages else ''}"


def text(cell: Cell) -> str:
    """A cell as text; null is empty."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return "" if cell is None else str(cell)


def settle_database(opened: Opened, db: Database, out: Out, records: int) -> None:
    """State what was damaged, and account for the file; pages of tables that hold no metrics count as read."""
    if db.log.why:
        lost = db.log.lost_bytes
        out.issue("log-not-read", f"{lost} bytes of the write-ahead log beside it were not read: {db.log.why}")
    for damage in db.damages:
        out.issue("damaged", damage.message, byte=damage.byte)
    lost = min(sum(damage.lost_bytes for damage in db.damages), opened.size_bytes)
    if lost:
        out.account(skipped_bytes=lost, reason="damaged pages of the database")
    out.account(read_bytes=opened.size_bytes - lost, records=records)


def every_row(  # noqa: PLR0913 - one table and all that it is read with
    db: Database,
    tables: Mapping[str, Table],
    name: str,
    columns: tuple[str, ...],
    out: Out,
    *,
    like: Callable[[Row], bool],
) -> Iterator[Row]:
    """Rows of a table; where a page of it is damaged, also rows of left-over pages that look `like` its own."""
    before = len(db.damages)
    yield from sqlite_pages.rows(db, tables[name], columns)
    if len(db.damages) == before:
        return
    count = first = 0
    for row in orphans(db, tables, tables[name], columns):
        if like(row):
            first = first or row.byte or 0
            count += 1
            yield row
    if count:
        out.issue("recovered", f"rows of {name} were found in pages that nothing leads to", byte=first, count=count)
