"""SQLite databases and their write-ahead logs against sqlite3: every row, whatever was done to the files.

The peer opens copies in a folder of its own. What is checkpointed, committed in the log, never committed, cut, damaged
or left over from an older log is decided by SQLite's own recovery there.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.io.reading import opened_bytes
from forensics.io.sqlite import pages as sqlite_pages
from forensics.io.sqlite.wal import Log, log_of

Rows = list[tuple[Any, ...]]
TABLES = ("t", "u")
CELL = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    st.binary(max_size=20),
)
#: Enough for leaf pages, inner pages, chains of overflow pages, freed and used-again pages, and a smaller file.
STEP = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from(TABLES), st.integers(1, 30), st.integers(0, 1200), CELL),
    st.tuples(st.just("delete"), st.sampled_from(TABLES), st.integers(1, 5), st.just(0), st.none()),
    st.tuples(st.just("update"), st.sampled_from(TABLES), st.integers(1, 7), st.integers(0, 1500), CELL),
    st.tuples(st.just("checkpoint"), st.just(""), st.sampled_from([0, 1]), st.just(0), st.none()),
    st.tuples(st.just("vacuum"), st.just(""), st.just(0), st.just(0), st.none()),
)
STEPS = st.lists(STEP, min_size=1, max_size=7)


def do(connection: sqlite3.Connection, step: tuple[str, str, int, int, Any]) -> None:
    what, table, count, size, cell = step
    if what == "insert":
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [(cell, "x" * (size + i)) for i in range(count)])
    elif what == "delete":
        connection.execute(f"DELETE FROM {table} WHERE rowid % {count + 1} = 1")
    elif what == "update":
        connection.execute(f"UPDATE {table} SET a = ?, b = ? WHERE rowid % {count} = 0", (cell, "y" * size))
    elif what == "checkpoint":
        connection.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'RESTART', 'TRUNCATE')[count]})")
    else:
        connection.execute("VACUUM")


def left_by_a_killed_writer(
    folder: Path, steps: Sequence[tuple[str, str, int, int, Any]], page_bytes: int, *, open_end: bool = False
) -> tuple[bytes, bytes]:
    """The database and its log after these steps, each a transaction, copied while the writer has them open."""
    path = folder / "writer.db"
    for name in ("writer.db", "writer.db-wal", "writer.db-shm"):
        (folder / name).unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
            "PRAGMA synchronous = OFF; CREATE TABLE t (a, b); CREATE TABLE u (a, b);"
        )
        for step in steps:
            if step[0] in {"checkpoint", "vacuum"}:
                do(connection, step)
            else:
                connection.execute("BEGIN")
                do(connection, step)
                connection.execute("COMMIT")
        if open_end:  # a cache of one page spills what is not committed yet
            connection.executescript("PRAGMA cache_size = 1; BEGIN")
            do(connection, ("insert", "t", 60, 900, 1))
        return path.read_bytes(), (folder / "writer.db-wal").read_bytes()


def by_sqlite(folder: Path, data: bytes, log: bytes | None, tables: Sequence[str] = TABLES) -> list[Rows]:
    path = folder / "peer.db"
    (folder / "peer.db-shm").unlink(missing_ok=True)
    path.write_bytes(data)
    beside = folder / "peer.db-wal"
    beside.unlink(missing_ok=True)
    if log is not None:
        beside.write_bytes(log)
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"SELECT rowid, a, b FROM {table} ORDER BY rowid").fetchall() for table in tables]


def by_us(data: bytes, log: bytes | None) -> tuple[list[Rows], sqlite_pages.Database]:
    opened = opened_bytes("x.db", data)
    found = None if log is None else log_of(opened_bytes("x.db-wal", log).span, len(log))
    db = sqlite_pages.database(opened.span, len(data), found)
    tables = sqlite_pages.tables(db)
    read = [[(r.rowid, *r.cells) for r in sqlite_pages.rows(db, tables[name], ("a", "b"))] for name in TABLES]
    return read, db


def logged(log: bytes) -> Log:
    return log_of(opened_bytes("x-wal", log).span, len(log))


def laid_over(data: bytes, log: bytes) -> sqlite_pages.Database:
    return sqlite_pages.database(opened_bytes("x", data).span, len(data), logged(log))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("databases")


@given(steps=STEPS, page_bytes=st.sampled_from([512, 1024, 4096, 65536]))
def test_every_row_is_the_one_that_sqlite_gives(folder: Path, steps: list[Any], page_bytes: int) -> None:
    data, log = left_by_a_killed_writer(folder, steps, page_bytes)
    read, db = by_us(data, log)
    assert read == by_sqlite(folder, data, log)
    assert db.damages == []
    assert (db.log.good_bytes <= len(log), db.log.lost_bytes, db.log.why) == (True, 0, "")


@given(
    steps=STEPS, page_bytes=st.sampled_from([512, 4096]), end=st.floats(0, 1), flip=st.booleans(), where=st.floats(0, 1)
)
def test_a_log_that_is_cut_or_damaged_gives_what_sqlite_recovers_and_the_rest_is_stated(
    folder: Path, *, steps: list[Any], page_bytes: int, end: float, flip: bool, where: float
) -> None:
    data, log = left_by_a_killed_writer(folder, [("checkpoint", "", 2, 0, None), *steps], page_bytes)
    torn = bytearray(log[: int(end * len(log))])
    if flip and torn:
        torn[min(int(where * len(torn)), len(torn) - 1)] ^= 0x40
    read, db = by_us(data, bytes(torn))
    assert read == by_sqlite(folder, data, bytes(torn))
    assert (db.log.lost_bytes > 0) == (db.log.why != "")
    assert db.log.good_bytes + db.log.lost_bytes <= len(torn)


def inserts(*counts: int) -> list[Any]:
    return [("insert", "t", count, 100, 0.5) for count in counts]


def test_rows_that_stand_in_the_log_only_are_read_and_have_no_place_in_the_database(folder: Path) -> None:
    data, log = left_by_a_killed_writer(folder, [*inserts(40), ("checkpoint", "", 1, 0, None), *inserts(500)], 512)
    (alone, _), _ = by_us(data, None)
    db = laid_over(data, log)
    places = [row.byte for row in sqlite_pages.rows(db, sqlite_pages.tables(db)["t"], ("b",))]
    assert (len(alone), len(places)) == (40, 540)
    assert places[0] is not None
    assert data[places[0] : places[0] + 120].count(b"x") >= 100
    assert places[-1] is None


def test_what_was_never_committed_is_no_row_and_is_stated(folder: Path) -> None:
    data, log = left_by_a_killed_writer(folder, inserts(30), 512, open_end=True)
    (rows, _), db = by_us(data, log)
    assert [rows, []] == by_sqlite(folder, data, log)
    assert len(rows) == 30
    assert db.log.why == "its last transaction was never committed"
    assert db.log.good_bytes + db.log.lost_bytes == len(log)


def test_frames_of_an_older_log_are_neither_rows_nor_a_loss(folder: Path) -> None:
    steps = [*inserts(300), ("checkpoint", "", 1, 0, None), *inserts(1)]
    data, log = left_by_a_killed_writer(folder, steps, 512)
    found = logged(log)
    assert found.good_bytes < len(log) / 3
    assert (found.lost_bytes, found.why) == (0, "")
    assert len(by_us(data, log)[0][0]) == 301


def test_a_damaged_frame_ends_the_log_where_sqlite_ends_it(folder: Path) -> None:
    data, log = left_by_a_killed_writer(folder, inserts(*[5] * 40), 512)
    torn = bytearray(log)
    torn[len(log) // 2] ^= 1
    read, db = by_us(data, bytes(torn))
    assert read == by_sqlite(folder, data, bytes(torn))
    assert 0 < len(read[0]) < 200
    assert db.log.why == "a frame is damaged"
    assert db.log.good_bytes + db.log.lost_bytes == len(log)


@pytest.mark.parametrize("at", [0, 7, 9, 20, 30])
def test_a_log_with_a_damaged_header_is_left_out_as_a_whole(folder: Path, at: int) -> None:
    data, log = left_by_a_killed_writer(folder, [*inserts(5), ("checkpoint", "", 0, 0, None), *inserts(7)], 512)
    torn = bytearray(log)
    torn[at] ^= 0x10
    read, db = by_us(data, bytes(torn))
    assert read == by_sqlite(folder, data, bytes(torn))
    assert logged(bytes(torn)).lost_bytes == len(log)
    assert db.log.pages == {}


def test_a_log_of_another_page_size_is_not_laid_over_a_database(folder: Path) -> None:
    data, _ = left_by_a_killed_writer(folder, [*inserts(50), ("checkpoint", "", 0, 0, None)], 512)
    log = left_by_a_killed_writer(folder, [("checkpoint", "", 1, 0, None), *inserts(9)], 4096)[1]
    without_first = logged(log)
    without_first.pages.pop(1, None)
    db = sqlite_pages.database(opened_bytes("x", data).span, len(data), without_first)
    whole = without_first.good_bytes
    assert (db.log.pages, db.log.lost_bytes, db.log.why) == ({}, whole, "it is the log of no such database")
    assert len(list(sqlite_pages.rows(db, sqlite_pages.tables(db)["t"], ("a",)))) == 50


def test_a_log_whose_first_page_is_no_header_costs_the_log_and_not_the_database(folder: Path) -> None:
    data, _ = left_by_a_killed_writer(folder, [*inserts(50), ("checkpoint", "", 0, 0, None)], 512)
    db = laid_over(data, made_log([(1, 1, b"\5" * 512)], 512, big=False))
    assert db.log.why == "it is the log of no such database"
    assert len(list(sqlite_pages.rows(db, sqlite_pages.tables(db)["t"], ("a",)))) == 50


def test_a_log_that_claims_more_pages_than_there_are_bytes_costs_no_memory(folder: Path) -> None:
    data, log = left_by_a_killed_writer(folder, inserts(9), 512)
    found = logged(log)
    claimed = Log(found.read, 512, found.pages, 0xFFFFFFFF, found.good_bytes)
    db = sqlite_pages.database(opened_bytes("x", data).span, len(data), claimed)
    assert db.pages == len(data) // 512 + len(found.pages)


def test_copies_made_while_the_writer_goes_on_give_a_begin_of_its_rows(folder: Path) -> None:
    """The database is copied first and the log later, as a copy of a folder does; nothing is made up."""
    steps = [("checkpoint", "", 1, 0, None), *inserts(*[30] * 12)]
    data, _ = left_by_a_killed_writer(folder, steps[:4], 512)
    whole, log = left_by_a_killed_writer(folder, steps, 512)
    (every, _), _ = by_us(whole, log)
    for end in range(32, len(log), 5000):
        (rows, _), _ = by_us(data, log[:end])
        assert rows == every[: len(rows)]
        assert [rows, []] == by_sqlite(folder, data, log[:end])


def test_half_a_million_rows_in_database_and_log(folder: Path, true_size: None) -> None:
    del true_size
    with closing(sqlite3.connect(folder / "big.db", isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a, b)")
        for part in range(10):
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO t VALUES (?, ?)", (((part * 60_000 + i) / 7, str(i)) for i in range(60_000))
            )
            connection.execute("COMMIT")
            if part == 4:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
        data, log = (folder / "big.db").read_bytes(), (folder / "big.db-wal").read_bytes()
    db = laid_over(data, log)
    read = [(r.rowid, *r.cells) for r in sqlite_pages.rows(db, sqlite_pages.tables(db)["t"], ("a", "b"))]
    assert len(read) == 600_000
    assert [read] == by_sqlite(folder, data, log, ("t",))


def sums(data: bytes, order: str, one: int, two: int) -> tuple[int, int]:
    """SQLite's checksum, word by word as its documentation says it."""
    for first, second in struct.iter_unpack(f"{order}2I", data):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def made_log(frames: Sequence[tuple[int, int, bytes]], page_bytes: int, *, big: bool) -> bytes:
    """A log of these frames (page, size of the database after a commit or 0, bytes), every checksum right."""
    order = ">" if big else "<"
    head = struct.pack(">3I4s8s", 0x377F0682 + big, 3_007_000, page_bytes, b"\0\0\0\1", b"saltsalt")
    one, two = sums(head, order, 0, 0)
    parts = [head, struct.pack(">2I", one, two)]
    for number, commit, page in frames:
        begin = struct.pack(">2I", number, commit)
        one, two = sums(begin + page, order, one, two)
        parts += [begin, b"saltsalt", struct.pack(">2I", one, two), page]
    return b"".join(parts)


@given(steps=STEPS, big=st.booleans(), data=st.data())
def test_logs_of_either_byte_order_are_laid_over_as_sqlite_does(
    folder: Path, steps: list[Any], big: bool, data: st.DataObject
) -> None:
    """Pages of the state after the steps, in any order and number of transactions, over the state before them."""
    begin = [("insert", "t", 9, 700, None), ("checkpoint", "", 2, 0, None)]
    before, _ = left_by_a_killed_writer(folder, begin, 512)
    after, _ = left_by_a_killed_writer(folder, [*begin, *steps, ("checkpoint", "", 2, 0, None)], 512)
    numbers = data.draw(st.permutations(range(1, len(after) // 512 + 1)))
    frames = [(n, 0, after[(n - 1) * 512 : n * 512]) for n in numbers]
    frames[-1] = (frames[-1][0], len(after) // 512, frames[-1][2])
    log = made_log(frames, 512, big=big)
    read, db = by_us(before, log)
    assert read == by_sqlite(folder, before, log)
    assert (db.log.good_bytes, db.log.why) == (len(log), "")


@given(
    frames=st.lists(
        st.tuples(st.integers(0, 1 << 32) | st.integers(0, 12), st.integers(0, 12), st.binary(max_size=64)), max_size=12
    )
)
def test_no_log_made_to_do_harm_raises_or_makes_rows_without_end(folder: Path, frames: list[Any]) -> None:
    data, _ = left_by_a_killed_writer(folder, [("insert", "t", 30, 300, 1), ("checkpoint", "", 2, 0, None)], 512)
    log = made_log([(n & 0xFFFFFFFF, c, p.ljust(512, b"\5")) for n, c, p in frames], 512, big=False)
    db = laid_over(data, log)
    found = sum(1 for table in sqlite_pages.tables(db).values() for _ in sqlite_pages.rows(db, table, ("a", "b")))
    assert found <= len(data) + len(log)
    assert db.pages <= len(data) // 512 + len(frames)
