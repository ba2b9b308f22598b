"""SQLite pages: every row that SQLite itself gives, no row for a damaged page, and no harm from a hostile schema."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import InputError
from forensics.io.reading import opened_bytes
from forensics.io.sqlite import pages
from forensics.io.sqlite.orphans import orphans

CELLS = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40),
    st.binary(max_size=40),
    st.sampled_from([0, 1, -1, "", b"", "x" * 3000, b"\0" * 700]),
)


def made(statements: str, rows: Iterable[tuple[object, ...]] = (), insert: str = "", page_bytes: int = 512) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA page_size = {page_bytes}")
        connection.executescript(statements)
        connection.executemany(insert, rows) if insert else None
        connection.commit()
        return connection.serialize()


def database(data: bytes) -> pages.Database:
    return pages.database(opened_bytes("x.db", data).span, len(data))


def read(data: bytes, name: str, columns: tuple[str, ...] | None = None) -> tuple[list[tuple[object, ...]], list[str]]:
    db = database(data)
    table = pages.tables(db)[name]
    found = [row.cells for row in pages.rows(db, table, columns or table.columns)]
    return found, [damage.message for damage in db.damages]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=60), st.sampled_from([512, 1024, 4096, 65536]))
def test_all_rows_are_those_that_sqlite_gives(rows: list[tuple[object, ...]], page_bytes: int) -> None:
    data = made("CREATE TABLE t (a, b, c)", rows, "INSERT INTO t VALUES (?, ?, ?)", page_bytes)
    assert read(data, "t") == (rows, [])


def test_many_rows_over_several_levels_keep_their_order() -> None:
    rows = [(number * 0.5, f"name {number}") for number in range(20_000)]
    data = made("CREATE TABLE t (a REAL, b TEXT)", rows, "INSERT INTO t VALUES (?, ?)")
    assert read(data, "t") == (rows, [])


def test_each_row_knows_where_it_stands() -> None:
    data = made("CREATE TABLE t (a TEXT)", [("needle-1",), ("needle-2",)], "INSERT INTO t VALUES (?)")
    db = database(data)
    for row in pages.rows(db, pages.tables(db)["t"], ("a",)):
        assert str(row.cells[0]).encode() in data[row.byte : row.byte + 16]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_text_is_read_in_the_encoding_of_the_database(encoding: str) -> None:
    sql = f"PRAGMA encoding = '{encoding}'; CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('grün λ')"
    assert read(made(sql), "t")[0] == [("grün λ",)]


def test_the_key_that_is_another_name_of_the_rowid_is_filled_in() -> None:
    sql = "CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (7, 'x'), (9, 'y')"
    assert read(made(sql), "t")[0] == [(7, "x"), (9, "y")]
    sql = "CREATE TABLE t (a, id INTEGER, CONSTRAINT k PRIMARY KEY (id)); INSERT INTO t VALUES ('x', 7)"
    assert read(made(sql), "t")[0] == [("x", 7)]


def test_columns_that_came_later_are_none_in_earlier_rows() -> None:
    sql = (
        "CREATE TABLE t (a); INSERT INTO t VALUES (1);ALTER TABLE t ADD COLUMN b DEFAULT 5; INSERT INTO t VALUES (2, 3)"
    )
    assert read(made(sql), "t")[0] == [(1, None), (2, 3)]


def test_generated_columns_that_are_not_stored_take_no_place() -> None:
    sql = (
        "CREATE TABLE t (a INT, d INT GENERATED ALWAYS AS (a * 2) VIRTUAL, s INT AS (a + 1) STORED, b TEXT);"
        "INSERT INTO t (a, b) VALUES (4, 'x')"
    )
    assert read(made(sql), "t") == ([(4, 5, "x")], [])


@pytest.mark.parametrize(
    "columns",
    [
        '"a b" TEXT, [c d] INT, `e``f` REAL, "g""h" BLOB',
        "a DECIMAL(10, 2) DEFAULT (1), b TEXT CHECK (b IN ('x', 'y,z)')) /* note, b */, c -- last, one\n",
        "a INT, b INT, CONSTRAINT u UNIQUE (a, b), FOREIGN KEY (a) REFERENCES o (x), CHECK (a > 0)",
        "key TEXT, value FLOAT, PRIMARY KEY (key, value)",
    ],
)
def test_columns_have_the_names_that_sqlite_gives_them(columns: str) -> None:
    sql = f"CREATE TABLE t ({columns})"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(sql)
        names = tuple(row[1] for row in connection.execute("PRAGMA table_info(t)"))
    assert pages.tables(database(made(sql)))["t"].columns == names


def test_a_view_or_virtual_table_is_no_table() -> None:
    sql = (
        "CREATE TABLE t (a); CREATE VIEW metrics AS SELECT a AS key FROM t;"
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END"
    )
    assert set(pages.tables(database(made(sql)))) == {"t"}


def test_a_damaged_page_costs_its_own_rows_and_says_so() -> None:
    rows = [(number, "x" * 20) for number in range(400)]
    data = made("CREATE TABLE t (a INT, b TEXT)", rows, "INSERT INTO t VALUES (?, ?)")
    torn = data[: 512 * 9] + b"\xee" * 512 + data[512 * 10 :]
    found, damages = read(torn, "t")
    assert damages == ["page 10 is no page of a table"]
    assert set(found) < set(rows)
    assert len(found) > 370


def test_a_longer_part_of_a_file_never_gives_fewer_rows() -> None:
    rows = [(number, "x" * (number % 900)) for number in range(200)]
    data = made("CREATE TABLE t (a INT, b TEXT)", rows, "INSERT INTO t VALUES (?, ?)")
    before = 0
    for end in range(2048, len(data) + 1, 331):
        found, _ = read(data[:end], "t")
        assert set(found) <= set(rows)
        assert len(found) >= before
        before = len(found)
    assert read(data, "t")[0] == rows


def test_pages_that_lead_in_a_circle_are_read_once() -> None:
    data = bytearray(
        made("CREATE TABLE t (a INT, b TEXT)", [(n, "y" * 30) for n in range(300)], "INSERT INTO t VALUES (?, ?)")
    )
    root = 512
    data[root + 8 : root + 12] = (2).to_bytes(4, "big")
    found, damages = read(bytes(data), "t")
    assert "page 2 is used twice" in damages
    assert len(found) == len(set(found))


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_noise_gives_rows_or_damage_and_never_an_exception(rng: random.Random, changes: int) -> None:
    data = bytearray(
        made("CREATE TABLE t (a INT, b TEXT)", [(n, "z" * (n * 7)) for n in range(90)], "INSERT INTO t VALUES (?, ?)")
    )
    for _ in range(changes):
        data[rng.randrange(100, len(data))] = rng.randrange(256)
    db = database(bytes(data))
    found = sum(1 for table in pages.tables(db).values() for _ in pages.rows(db, table, ("a", "b")))
    assert found <= len(data)


@pytest.mark.parametrize("data", [b"", pages.MAGIC, pages.MAGIC + b"\0" * 84, b"x" * 512, pages.MAGIC + b"\xff" * 84])
def test_other_bytes_are_no_database(data: bytes) -> None:
    with pytest.raises(InputError):
        database(data)


def orphaned(data: bytes, name: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    db = database(data)
    known = pages.tables(db)
    reached = [row.cells for row in pages.rows(db, known[name], known[name].columns)]
    return reached, [row.cells for row in orphans(db, known, known[name], known[name].columns)]


def test_rows_below_a_damaged_root_are_found_without_those_that_were_deleted() -> None:
    rows = [(number, "x" * 30) for number in range(600)]
    sql = (
        "CREATE TABLE other (p INT, q TEXT); CREATE TABLE t (a INT, b TEXT); CREATE TABLE gone (a INT, b TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
        "INSERT INTO gone SELECT -i, 'deleted and still there' FROM n;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
        "INSERT INTO other SELECT -i, 'of another table' FROM n; DROP TABLE gone;"
    )
    data = made(sql, rows, "INSERT INTO t VALUES (?, ?)")
    root = pages.tables(database(data))["t"].root
    torn = data[: (root - 1) * 512] + b"\xaa" * 512 + data[root * 512 :]
    reached, found = orphaned(torn, "t")
    assert reached == []
    assert sorted(found) == rows


def test_nothing_is_left_over_in_a_sound_database() -> None:
    data = made("CREATE TABLE t (a INT, b TEXT)", [(n, "y" * n) for n in range(300)], "INSERT INTO t VALUES (?, ?)")
    reached, found = orphaned(data, "t")
    assert (len(reached), found) == (300, [])


def test_a_longer_piece_of_a_file_never_gives_fewer_rows() -> None:
    whole = made("CREATE TABLE t (a, b)", [(n, "x" * (n % 40)) for n in range(40)], "INSERT INTO t VALUES (?, ?)", 1024)
    kept = 0
    for cut in range(1024, len(whole) + 1):
        rows = len(read(whole[:cut], "t")[0])
        assert rows >= kept, cut
        kept = rows
    assert kept == 40
