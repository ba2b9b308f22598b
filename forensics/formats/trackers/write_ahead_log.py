"""The write-ahead log of a tracker's SQLite database (`<database>-wal`): accounted for here, its rows read with it.

What committed transactions left in the log is part of the database beside it, and its reader gives those rows. A
transaction that was never committed, and what follows a damaged frame, is not read, as by SQLite itself.
"""

from __future__ import annotations

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.trackers._tables import LOG, MLFLOW, TRACKIO, open_tables
from forensics.io.sqlite.wal import MAGICS, Log


@ingester("sqlite_wal", version=1, sniff=Sniff(magic=MAGICS, glob=("*-wal",)), emits=(), beside=((LOG, ""),))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Account for one log; raises `NotMine` when no database of a known tracker is beside it."""
    del limits
    database = opened.beside(LOG, "")
    log = None if database is None else _read_with(database)
    if log is None:
        raise NotMine("no database that is read")
    if log.why:
        out.account(skipped_bytes=log.lost_bytes, reason=log.why)
    out.account(read_bytes=opened.size_bytes - log.lost_bytes)
    out.format("write-ahead log, read with its database")


def _read_with(database: Opened) -> Log | None:
    """The log as the reader of the database takes it; None where no reader does."""
    for columns in (MLFLOW, TRACKIO):
        try:
            return open_tables(database, columns)[0].log
        except NotMine:
            continue
    return None
