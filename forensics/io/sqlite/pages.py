"""SQLite databases as bytes: tables and their rows, walked page by page, each row with its offset; no SQL is ever run.

A database of a run may be damaged or made to do harm, and SQLite itself would look for a journal beside it, write to
it, and evaluate what its schema says (views, triggers, generated columns). So the pages are read as they are on disk. A
page that is damaged costs its own rows, an inner page those below it; both are stated with their offset. Pages in a
write-ahead log (`sqlite_wal`) are taken from there; their rows have no offset in the database.

Layout: the format description of sqlite.org, "Database File Format", sections 1.3 to 1.6 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from forensics.errors import InputError
from forensics.io.sqlite._record import Cell, Plans, varint
from forensics.io.sqlite.wal import Log, Read
from forensics.patterns import lazily
from forensics.values import replace

__all__ = ["LEAF", "MAGIC", "Cell", "Damage", "Database", "Row", "Table", "database", "leaf_rows", "rows", "tables"]

MAGIC = b"SQLite format 3\0"
_HEADER = 100
LEAF, _INNER = 0x0D, 0x05
#: A row of more bytes is not a metric, and is stated instead of read.
_ROW_BYTES = 1 << 20
_DAMAGES = 1000
_SCHEMA_ROWS = 10_000


# What a `CREATE TABLE` statement says of the columns of a table; the statement is read as words and never run.

_SQL_CHARS = 1 << 16
_TOKEN = lazily(
    r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?+"
    r"|\"(?:[^\"]|\"\")*+\"|`(?:[^`]|``)*+`|\[[^\]]*+\]|'(?:[^']|'')*+'"
    r"|[^\s\"'`\[\](),/-]++|[(),]"
)
_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})


class Table(Struct, frozen=True):
    """A table: the page at its root, its stored columns in order, and the other name of the rowid among them."""

    name: str
    root: int
    columns: tuple[str, ...]
    rowid_column: int | None


def table_of(name: str, root: int, sql: str) -> Table:
    """Read a statement; all but column definitions is passed over."""
    columns: list[str] = []
    integers: list[str] = []
    keys: list[list[str]] = []
    for part in _parts(sql[:_SQL_CHARS]):
        words = [word.upper() for word, depth in part if depth == 1]
        if words[0] in _CONSTRAINTS:
            if "PRIMARY" in words[:3]:
                keys.append([_bare(word) for word, depth in part if depth == 2 and word != ","])
            continue
        column = _bare(part[0][0])
        if "AS" in words[1:] and "STORED" not in words:
            continue  # a generated column that is not stored takes no place in a row
        if words[1:2] == ["INTEGER"]:
            integers.append(column)
            if "PRIMARY" in words:
                keys.append([column])
        columns.append(column)
    alias = next((key[0] for key in keys if key and len(key) == 1 and key[0] in integers), None)
    return Table(name, root, tuple(columns), columns.index(alias) if alias is not None else None)


def _parts(sql: str) -> Iterator[list[tuple[str, int]]]:
    """Definitions between the outermost brackets: words with the depth of brackets around them."""
    depth = 0
    part: list[tuple[str, int]] = []
    for found in _TOKEN.finditer(sql):
        word = found.group()
        if word.startswith(("--", "/*")):
            continue
        if word == ")":
            depth -= 1
        if (depth == 0 and word == ")") or (depth == 1 and word == ","):
            if part:
                yield part
            part = []
            if depth == 0:
                return
        elif depth >= 1 and word not in "()":
            part.append((word, depth))
        if word == "(":
            depth += 1


def _bare(word: str) -> str:
    quote = word[:1]
    if quote in {'"', "`"}:
        return word[1:-1].replace(quote * 2, quote)
    return word[1:-1] if quote in {"[", "'"} else word


_SCHEMA = Table("sqlite_schema", 1, ("type", "name", "tbl_name", "rootpage", "sql"), None)


class Damage(Struct, frozen=True):
    """A loss of a database: `lost_bytes` of the file, from `byte` on."""

    byte: int
    message: str
    lost_bytes: int = 0


class Row(Struct, frozen=True):
    """One row: the offset of its cell in the file, its rowid, and the cells in the order of the columns asked for.

    The offset is None where the row's page is only in a write-ahead log.
    """

    byte: int | None
    rowid: int
    cells: tuple[Cell, ...]


class Database(Struct):
    """The bytes and what their header says; `damages` grows while rows are read, `seen` marks the pages."""

    read: Read
    log: Log
    page_bytes: int
    usable_bytes: int
    encoding: str
    pages: int
    seen: bytearray
    damages: list[Damage] = field(default_factory=list[Damage])

    def damage(self, byte: int, message: str, lost_bytes: int = 0) -> None:
        """Note a loss; beyond a thousand, the last one grows."""
        if len(self.damages) < _DAMAGES:
            self.damages.append(Damage(byte, message, lost_bytes))
        else:
            last = self.damages[-1]
            self.damages[-1] = Damage(last.byte, "further damage", last.lost_bytes + lost_bytes)

    def page(self, number: int) -> bytes:
        """The bytes of a page from 1 on, fewer where the file ends in it."""
        logged = self.log.page(number)
        return self.read((number - 1) * self.page_bytes, self.page_bytes) if logged is None else logged

    def placed(self, number: int, page: bytes, found: Iterable[Row]) -> Iterable[Row]:
        """The rows of a page, without their offsets where the database itself does not hold the page."""
        if number not in self.log.pages or page == self.read((number - 1) * self.page_bytes, self.page_bytes):
            return found
        return (replace(row, byte=None) for row in found)

    def claim(self, number: int, found_at: int) -> bool:
        """Whether a page exists and is reached for the first time; otherwise the loss is noted."""
        if not 1 <= number <= self.pages:
            self.damage(found_at, f"page {number} is behind the end of the file")
            return False
        if self.seen[number - 1]:
            self.damage(found_at, f"page {number} is used twice")
            return False
        self.seen[number - 1] = 1
        return True


def database(read: Read, size_bytes: int, log: Log | None = None) -> Database:
    """Read the header of `size_bytes`, of which `read(offset, count)` gives parts, with the pages of a log over them.

    Raises `InputError` when it is none of SQLite.
    """
    log = log or Log(read)
    head = log.page(1) or read(0, _HEADER)
    if log.pages and _page_bytes(head) != log.page_bytes:
        log = Log(read, lost_bytes=log.good_bytes + log.lost_bytes, why="it is the log of no such database")
        head = read(0, _HEADER)
    page_bytes = _page_bytes(head)
    if not page_bytes:
        raise InputError("no header of a SQLite database")
    encoding = {2: "utf-16-le", 3: "utf-16-be"}.get(int.from_bytes(head[56:60], "big"), "utf-8")
    pages = -(-size_bytes // page_bytes)
    if log.db_pages:  # no more than there are bytes for, whatever the log claims
        pages = min(log.db_pages, pages + len(log.pages))
    return Database(read, log, page_bytes, page_bytes - head[20], encoding, pages, bytearray(pages))


def _page_bytes(head: bytes) -> int:
    """Size of the pages that a header states, 0 for what is no header."""
    size = int.from_bytes(head[16:18], "big")
    size = 65536 if size == 1 else size
    sound = len(head) >= _HEADER and head.startswith(MAGIC) and 512 <= size <= 65536
    return size if sound and not size & (size - 1) and size - head[20] >= 480 else 0


def tables(db: Database) -> Mapping[str, Table]:
    """Ordinary tables by name, as the schema defines them; views and virtual tables are left out."""
    found: dict[str, Table] = {}
    for number, row in enumerate(rows(db, _SCHEMA, ("type", "name", "rootpage", "sql"))):
        kind, name, root, sql = row.cells
        if number >= _SCHEMA_ROWS:
            break
        if kind == "table" and isinstance(name, str) and isinstance(root, int) and isinstance(sql, str) and root > 1:
            found.setdefault(name, table_of(name, root, sql))
    return found


def rows(db: Database, table: Table, columns: tuple[str, ...]) -> Iterator[Row]:
    """The rows of a table in the order of their rowids, with the cells of `columns`.

    A column that the table has not, and one that was added after a row was written, gives None.
    """
    places = tuple(table.columns.index(name) if name in table.columns else -1 for name in columns)
    rowid_at = tuple(i for i, place in enumerate(places) if place == table.rowid_column and place >= 0)
    plans = Plans(places, db.encoding)
    stack = [(table.root, 0)]
    while stack:
        number, found_at = stack.pop()
        if not db.claim(number, found_at):
            continue
        page = db.page(number)
        start = (number - 1) * db.page_bytes
        head = _HEADER if number == 1 else 0
        kind = page[head] if head < len(page) else 0
        if kind == _INNER:
            stack.extend(reversed(_children(db, page, head, start)))
        elif kind == LEAF:
            yield from db.placed(number, page, leaf_rows(db, page, (head, start), plans, rowid_at))
        else:
            db.damage(start, f"page {number} is no page of a table", len(page))


def _pointers(page: bytes, head: int, width: int) -> list[int]:
    count = int.from_bytes(page[head + 3 : head + 5], "big")
    array = page[head + width : head + width + 2 * count]
    return [int.from_bytes(array[i : i + 2], "big") for i in range(0, len(array) - 1, 2)]


def _children(db: Database, page: bytes, head: int, start: int) -> list[tuple[int, int]]:
    """Pages below an inner page, in order, and where each is named."""
    found: list[tuple[int, int]] = []
    for at in _pointers(page, head, 12):
        if at + 4 > len(page):
            db.damage(start + min(at, len(page)), "a cell of an inner page is behind the end of its page")
            continue
        found.append((int.from_bytes(page[at : at + 4], "big"), start + at))
    return [*found, (int.from_bytes(page[head + 8 : head + 12], "big"), start + head + 8)]


def leaf_rows(
    db: Database, page: bytes, place: tuple[int, int], plans: Plans, rowid_at: tuple[int, ...]
) -> Iterator[Row]:
    """The rows of one leaf page; `place` is where its header begins in it, and where it begins in the file."""
    head, start = place
    left = db.usable_bytes  # of the whole page: where the file ends in it, rows behind the end count too
    for at in _pointers(page, head, 8):
        size, begin = varint(page, at)
        rowid, begin = varint(page, begin)
        local = _local(size, db.usable_bytes)
        left -= local
        if begin < 0 or local < 0 or begin + local > len(page) or left < 0:
            db.damage(start + min(at, len(page)), "a row is cut or damaged", max(min(local, len(page) - at), 0))
            continue
        payload = page[begin : begin + local]
        if local < size:
            payload = _joined(db, page, (start, begin + local), payload, size)
        cells = plans.cells(payload) if len(payload) == size else None
        if cells is None:
            db.damage(start + at, "a row is cut or damaged", local)
            continue
        for index in rowid_at:
            cells = (*cells[:index], rowid, *cells[index + 1 :])
        yield Row(start + at, rowid, cells)


def _local(size: int, usable: int) -> int:
    """Bytes of a row of `size` bytes that are in its leaf page; -1 for a size that no row has."""
    if not 0 <= size <= _ROW_BYTES:
        return -1
    if size <= usable - 35:
        return size
    least = (usable - 12) * 32 // 255 - 23
    most = least + (size - least) % (usable - 4)
    return most if most <= usable - 35 else least


def _joined(db: Database, page: bytes, place: tuple[int, int], payload: bytes, size: int) -> bytes:
    """A row with its overflow pages; shorter than `size` where the chain breaks."""
    start, at = place
    parts, have = [payload], len(payload)
    number, found_at = int.from_bytes(page[at : at + 4], "big"), start + at
    while have < size and db.claim(number, found_at):
        found_at = (number - 1) * db.page_bytes
        more = db.page(number)[: db.usable_bytes]
        number = int.from_bytes(more[:4], "big")
        parts.append(more[4 : 4 + size - have])
        have += len(parts[-1])
    return b"".join(parts)
