"""MLflow's and Trackio's stores against sqlite3 and json: every point as it was logged, from database and log."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.formats.trackers import mlflow_files, mlflow_sqlite
from forensics.formats.trackers import trackio as trackio_sqlite
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace

pytestmark = pytest.mark.usefixtures("only_owned_columns")

MLFLOW = (
    "CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,"
    " run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,"
    " CONSTRAINT metric_pk PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan))"
)
TRACKIO = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, timestamp TEXT NOT NULL,"
    " run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);"
    "CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT)"
)
NUMBER = st.floats(width=64)
COLUMNS = ("raw_name", "step", "t_ns", "value", "value_class", "byte")
Read = Callable[..., None]


def classed(value: float) -> str:
    return "nan" if math.isnan(value) else "finite" if math.isfinite(value) else "+inf" if value > 0 else "-inf"


def metrics(read: Read, data: bytes, log: bytes | None, batch_rows: int = 100_000) -> tuple[pl.DataFrame, SourceSink]:
    opened = opened_bytes("x.db", data, others={} if log is None else {"x.db-wal": log})
    limits = replace(DEFAULT, batch_rows=batch_rows)
    sink = SourceSink(opened.source, limits)
    read(opened, sink, limits)
    return sink.frames()["metrics"], sink


@contextmanager
def writer(path: Path, schema: str, page_bytes: int = 4096) -> Iterator[sqlite3.Connection]:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
            f"PRAGMA synchronous = OFF; {schema}; PRAGMA wal_checkpoint(TRUNCATE)"
        )
        yield connection


def commit(connection: sqlite3.Connection, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
    connection.execute("BEGIN")
    connection.executemany(sql, rows)
    connection.execute("COMMIT")


def stored(key: str, value: float, stamp_ms: int, run: str, step: int) -> tuple[Any, ...]:
    """A row as MLflow's own store writes it."""
    if math.isnan(value):
        return key, 0.0, stamp_ms, run, step, 1
    return key, math.copysign(sys.float_info.max, value) if math.isinf(value) else value, stamp_ms, run, step, 0


@given(
    values=st.lists(NUMBER, min_size=1, max_size=60),
    first_step=st.sampled_from([0, 7, (1 << 53) + 1, (1 << 62) + 1]),
    split=st.integers(0, 60),
    page_bytes=st.sampled_from([512, 4096]),
    batch_rows=st.sampled_from([1, 7, 1000]),
)
def test_every_point_of_mlflow_is_the_one_that_was_logged(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    values: list[float],
    first_step: int,
    split: int,
    page_bytes: int,
    batch_rows: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "mlflow.db"
    rows = [stored("loss", v, 1_750_000_000_000 + i, "r", first_step + i) for i, v in enumerate(values)]
    with writer(path, MLFLOW, page_bytes) as connection:
        commit(connection, "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows[:split])
        connection.execute("PRAGMA wal_checkpoint(RESTART)")
        commit(connection, "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows[split:])
        data, log = path.read_bytes(), path.with_name("mlflow.db-wal").read_bytes()
    read, sink = metrics(mlflow_sqlite.read, data, log, batch_rows)
    logged = [0.0 if v == 0 else v for v in values]  # a table of SQLite has one zero
    logged = [math.copysign(math.inf, v) if abs(v) == sys.float_info.max else v for v in logged]
    assert list(map(repr, read["value"])) == list(map(repr, logged))
    assert read["value_class"].to_list() == [classed(v) for v in logged]
    assert read["step"].to_list() == [first_step + i for i in range(len(values))]
    assert read["t_ns"].to_list() == [(1_750_000_000_000 + i) * 10**6 for i in range(len(values))]
    assert read["seq"].to_list() == list(range(len(values)))
    assert sink.coverage("x").skipped_bytes == 0
    if split >= len(values):
        assert all(data[byte : byte + 60].count(b"loss") for byte in read["byte"])


JSON_CELL = NUMBER.map(
    lambda v: v if math.isfinite(v) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(v)]
)


@given(
    records=st.lists(st.dictionaries(st.sampled_from(["loss", "a/b", "ü"]), JSON_CELL, max_size=3), max_size=40),
    long=st.sampled_from([0, 3000]),
    batch_rows=st.sampled_from([1, 5, 1000]),
)
def test_every_point_of_trackio_is_the_one_that_was_logged(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], long: int, batch_rows: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "trackio.db"
    rows = [
        ("r", f"2031-01-01T00:00:{i:02d}.5+00:00", "owl", i, json.dumps({**record, "text": "x" * long, "last": i}))
        for i, record in enumerate(records)
    ]
    with writer(path, TRACKIO, 1024) as connection:
        sql = "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)"
        commit(connection, sql, rows)
        (at,) = connection.execute("SELECT unixepoch('2031-01-01T00:00:00')").fetchone()
        data, log = path.read_bytes(), path.with_name("trackio.db-wal").read_bytes()
    if not rows:
        return
    read, sink = metrics(trackio_sqlite.read, data, log, batch_rows)
    expected = [
        (key, i, at * 10**9 + i * 10**9 + 500_000_000, repr(float(cell)), classed(float(cell)), None)
        for i, (*_, text) in enumerate(rows)
        for key, cell in json.loads(text).items()
        if key != "text"
    ]
    assert [(n, s, t, repr(v), c, b) for n, s, t, v, c, b in read.select(COLUMNS).rows()] == expected
    assert sink.coverage("x").skipped_bytes == 0


@given(
    points=st.lists(st.tuples(NUMBER, st.integers(-(1 << 63), (1 << 63) - 1)), min_size=1, max_size=60),
    batch_rows=st.sampled_from([1, 7, 1000]),
    block_bytes=st.sampled_from([16, 4096]),
)
def test_every_line_of_mlflows_files_is_its_point(
    points: list[tuple[float, int]], batch_rows: int, block_bytes: int
) -> None:
    lines = [f"{1_750_000_000_000 + i} {value!r} {step}\n" for i, (value, step) in enumerate(points)]
    limits = replace(DEFAULT, batch_rows=batch_rows, block_bytes=block_bytes)
    opened = opened_bytes("mlruns/0/r/metrics/train/loss", "".join(lines).encode(), limits)
    sink = SourceSink(opened.source, limits)
    mlflow_files.read(opened, sink, limits)
    read = sink.frames()["metrics"].select(*COLUMNS, "line").rows()
    byte = 0
    for i, (value, step) in enumerate(points):
        t_ns = (1_750_000_000_000 + i) * 10**6
        name, *axes, found, kind, at, line = read[i]
        assert (name, *axes, repr(found), kind) == ("train/loss", step, t_ns, repr(value), classed(value))
        assert (at, line) == (byte, i + 1)
        byte += len(lines[i])
    assert len(read) == len(points)


def killed(folder: Path, name: str = "run.db", rows: int = 300) -> Path:
    """A run whose writer was killed: the tables are in the database, all points in the log only."""
    folder.mkdir(exist_ok=True)
    source = folder.parent / "elsewhere.db"
    with writer(source, MLFLOW) as connection:
        points = [stored("loss", i / 8, 1_750_000_000_000 + i, "r", i) for i in range(rows)]
        commit(connection, "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", points)
        (folder / name).write_bytes(source.read_bytes())
        (folder / f"{name}-wal").write_bytes(source.with_name("elsewhere.db-wal").read_bytes())
    return folder / name


def digests(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {p.name: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest()) for p in folder.iterdir()}


@pytest.mark.parametrize("stored_on_disk", [False, True])
def test_points_of_a_killed_writer_are_read_from_the_log_and_both_files_are_read(
    tmp_path: Path, stored_on_disk: bool
) -> None:
    path = killed(tmp_path / "run")
    before = digests(path.parent)
    run = pipeline.ingest_run(path.parent, store=tmp_path / "store" if stored_on_disk else None)
    points = run.collect("metrics")
    assert points["value"].to_list() == [i / 8 for i in range(300)]
    assert points["source"].unique().to_list() == ["run.db"]
    assert points["byte"].null_count() == 300
    sources = run.collect("sources").sort("path")
    assert sources["ingester"].to_list() == ["mlflow_sqlite", "sqlite_wal"]
    assert sources["status"].to_list() == ["read", "read"]
    assert (sources["read"] == sources["size"]).all()
    assert "write-ahead log" in sources["format"][0]
    assert digests(path.parent) == before


def test_a_database_that_is_named_alone_is_read_with_its_log(tmp_path: Path) -> None:
    path = killed(tmp_path / "run")
    assert pipeline.ingest_run(path).collect("metrics").height == 300
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert pipeline.ingest_run(link).collect("metrics").height == 300


def test_a_log_that_is_a_link_or_a_folder_is_not_opened(tmp_path: Path) -> None:
    path = killed(tmp_path / "run")
    log = path.with_name("run.db-wal")
    log.rename(tmp_path / "away")
    log.symlink_to(tmp_path / "away")
    assert pipeline.ingest_run(path.parent).collect("metrics").height == 0
    log.unlink()
    log.mkdir()
    assert pipeline.ingest_run(path.parent).collect("metrics").height == 0


def test_a_log_without_its_database_is_named_and_not_read(tmp_path: Path) -> None:
    path = killed(tmp_path / "run")
    path.unlink()
    sources = pipeline.ingest_run(path.parent).collect("sources")
    assert sources.select("ingester", "read").rows() == [("not_read", 0)]
    assert "no database that is read stands beside it" in sources["reason"][0]


def test_what_of_a_log_is_not_read_is_stated_with_the_database_and_counted_with_the_log(tmp_path: Path) -> None:
    path = killed(tmp_path / "run")
    log = path.with_name("run.db-wal")
    data = log.read_bytes()
    log.write_bytes(data[: len(data) - 1000])
    run = pipeline.ingest_run(path.parent)
    assert run.collect("metrics").height == 0  # one transaction: without its end there is none
    issue = run.collect("issues").row(0, named=True)
    assert (issue["source"], issue["code"]) == ("run.db", "log-not-read")
    sources = run.collect("sources").sort("path")
    assert sources["status"].to_list() == ["read", "partial"]
    assert sources["reason"][1] == "its last frame is cut"
    assert issue["message"].startswith(f"{sources['size'][1] - sources['read'][1]} bytes ")


def test_a_store_reads_a_database_again_when_only_its_log_has_changed(tmp_path: Path) -> None:
    path = killed(tmp_path / "run")
    place = tmp_path / "store"
    log = path.with_name("run.db-wal")
    whole = log.read_bytes()
    log.write_bytes(whole[:32])
    assert pipeline.ingest_run(path.parent, store=place).collect("metrics").height == 0
    log.write_bytes(whole)
    assert pipeline.ingest_run(path.parent, store=place).collect("metrics").height == 300
    path.rename(path.with_name("other.db"))
    sources = pipeline.ingest_run(path.parent, store=place).collect("sources").sort("path")
    assert sources["ingester"].to_list() == ["mlflow_sqlite", "not_read"]


@pytest.mark.parametrize("stored_on_disk", [False, True])
def test_half_a_million_points_of_a_database_and_its_log(tmp_path: Path, true_size: None, stored_on_disk: bool) -> None:
    del true_size
    path = tmp_path / "run" / "mlflow.db"
    path.parent.mkdir()
    count = 500_000
    with writer(path, MLFLOW) as connection:
        for begin in range(0, count, 100_000):
            rows = (stored("loss", i / 7, 1_750_000_000_000 + i, "r", i) for i in range(begin, begin + 100_000))
            commit(connection, "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
            if begin == 200_000:
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
        peer = connection.execute("SELECT step, value, timestamp * 1000000 FROM metrics ORDER BY rowid").fetchall()
        run = pipeline.ingest_run(path.parent, store=tmp_path / "store" if stored_on_disk else None)
        assert run.collect("metrics").select("step", "value", "t_ns").rows() == peer
