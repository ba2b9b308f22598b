"""Rows of a SQLite table whose inner page is damaged: pages that no other table leads to and that are not free.

Deleted rows are in free pages, which the list of free pages names; other tables lead to their own. A leaf page that is
left over belongs to the damaged table if its rows have as many columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from forensics.io.sqlite._record import Plans, columns_in
from forensics.io.sqlite.pages import LEAF, Database, Row, Table, leaf_rows, rows


def orphans(db: Database, tables: Mapping[str, Table], table: Table, columns: tuple[str, ...]) -> Iterator[Row]:
    """Rows that `rows` did not reach, in the order of the file; call it when the rows of `table` have been read.

    `tables` are all tables of the database: the pages of those not read yet are walked first, to leave them out, and
    are given back, so that they can still be read.
    """
    before = bytes(db.seen)
    known = len(db.damages)
    for other in tables.values():
        if 1 < other.root <= db.pages and not db.seen[other.root - 1]:
            for _ in rows(db, other, ()):
                pass
    _claim_free(db)
    del db.damages[known:]  # other tables are not what was asked for
    taken, db.seen = db.seen, bytearray(before)
    plans = Plans(tuple(table.columns.index(name) if name in table.columns else -1 for name in columns), db.encoding)
    for number in range(2, db.pages + 1):
        start = (number - 1) * db.page_bytes
        if taken[number - 1] or (page := db.page(number))[:1] != bytes((LEAF,)):
            continue
        found = list(leaf_rows(db, page, (0, start), plans, ()))
        if found and all(columns_in(page, (row.byte or 0) - start) == len(table.columns) for row in found):
            db.seen[number - 1] = 1
            yield from db.placed(number, page, found)


def _claim_free(db: Database) -> None:
    """Mark the pages of the list of free pages, whose rows were deleted."""
    trunk = int.from_bytes(db.page(1)[32:36], "big")
    while 1 <= trunk <= db.pages and not db.seen[trunk - 1]:
        db.seen[trunk - 1] = 1
        page = db.page(trunk)
        count = min(int.from_bytes(page[4:8], "big"), len(page) // 4)
        for at in range(8, 8 + 4 * count, 4):
            free = int.from_bytes(page[at : at + 4], "big")
            if 1 <= free <= db.pages:
                db.seen[free - 1] = 1
        trunk = int.from_bytes(page[:4], "big")
