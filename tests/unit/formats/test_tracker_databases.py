"""MLflow's and Trackio's databases: what was logged is read, damage is stated, nothing is run or written."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.trackers import mlflow_sqlite
from forensics.formats.trackers import trackio as trackio_sqlite
from forensics.pipeline import ingest_run, triage

Run = Callable[..., Any]
FIXTURES = Path(__file__).parents[3] / "fixtures"
MLFLOW = FIXTURES / "mlflow_sqlite" / "crash-nan" / "mlflow.db"
TRACKIO = FIXTURES / "trackio_sqlite" / "crash-nan" / "owl.db"


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(path.read_bytes())
        return connection.execute(sql).fetchall()


def logged(value: float, is_nan: int) -> str:
    """What was logged, from what stands in the table, as text."""
    if is_nan:
        return "nan"
    return repr(math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value)


def test_every_point_of_mlflow_is_read_as_it_was_logged(run_fixture: Run) -> None:
    sql = "SELECT key, step, timestamp * 1000000, value, is_nan FROM metrics ORDER BY rowid"
    stored = [(key, step, t, logged(value, flag)) for key, step, t, value, flag in query(MLFLOW, sql)]
    metrics = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan").table("metrics")
    rows = metrics.select("raw_name", "step", "t_ns", "value").rows()
    assert [(key, step, t, repr(value)) for key, step, t, value in rows] == stored


def test_a_nan_that_stands_as_zero_is_a_nan(run_fixture: Run) -> None:
    metrics = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan").table("metrics")
    second = metrics.filter((pl.col("name") == "loss") & (pl.col("attempt") == 1))
    assert second["value_class"].to_list() == ["finite"] * 20 + ["+inf", "-inf"] + ["nan"] * 8
    assert metrics.filter(pl.col("value") == 0).is_empty()


def test_runs_are_attempts_and_the_last_one_gives_the_configuration(run_fixture: Run) -> None:
    wrote = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan")
    assert wrote.table("metrics")["attempt"].unique().sort().to_list() == [0, 1]
    facts = dict(wrote.table("facts").select("key", "value").rows())
    assert (facts["lr"], facts["runs.0.lr"]) == ('"0.002"', '"0.001"')
    assert (facts["mlflow.status"], facts["runs.0.mlflow.status"]) == ('"FAILED"', '"FINISHED"')
    assert not any("trainer" in value for value in facts.values())


def test_metrics_of_one_call_are_one_record(run_fixture: Run) -> None:
    metrics = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan").table("metrics")
    assert metrics.group_by("seq").len()["len"].unique().to_list() == [2]


def test_a_page_of_noise_costs_its_rows_and_is_stated(run_fixture: Run) -> None:
    whole = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan").table("metrics")
    wrote = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/broken-page")
    kept = wrote.table("metrics")
    assert 0.7 * whole.height < kept.height < whole.height
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.issues[0].byte % 1024 == 0
    assert wrote.coverage.skipped_bytes == 1024


def test_every_point_of_trackio_is_read_with_its_words_for_what_is_not_finite(run_fixture: Run) -> None:
    stored = [json.loads(text)["loss"] for (text,) in query(TRACKIO, "SELECT metrics FROM metrics ORDER BY id")]
    metrics = run_fixture(trackio_sqlite.read, "trackio_sqlite/crash-nan").table("metrics")
    loss = metrics.filter(pl.col("raw_name") == "loss")
    assert [repr(v) for v in loss["value"]] == [repr(float(v)) for v in stored]
    assert loss["value_class"].tail(4).to_list() == ["+inf", "-inf", "nan", "nan"]
    assert loss["t_ns"].diff().drop_nulls().unique().to_list() == [10**9]
    assert set(metrics["name"]) == {"loss", "grad_norm", "gpu_util_pct", "gpu_mem_used_gib"}


def test_settings_of_trackio_are_facts_without_the_user(run_fixture: Run) -> None:
    facts = run_fixture(trackio_sqlite.read, "trackio_sqlite/crash-nan").table("facts")
    assert facts.select("key", "value").rows() == [("lr", "0.0003"), ("model", '{"layers":4}')]


def test_a_row_that_is_no_json_is_stated(run: Run) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);"
            "INSERT INTO metrics VALUES (1, 'never', 'a', 1, '{\"loss\": 2'), (2, 'never', 'a', 2, '{\"loss\": null}')"
        )
        wrote = run(trackio_sqlite.read, "x.db", connection.serialize())
    assert [issue.code for issue in wrote.issues] == ["row-not-json"]
    assert wrote.table("metrics").select("step", "t_ns", "value_class").rows() == [(2, None, "null")]


@pytest.mark.parametrize("read", [mlflow_sqlite.read, trackio_sqlite.read])
def test_other_databases_and_views_are_left_to_others(read: Callable[..., None], run: Run) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "CREATE TABLE other (key, value, timestamp, run_uuid, run_name, step, metrics);"
            "CREATE VIEW metrics AS SELECT * FROM other"
        )
        data = connection.serialize()
    for content in (data, b"", b"SQLite format 3\0", MLFLOW.read_bytes()[:60]):
        with pytest.raises(NotMine):
            run(read, "x.db", content)


def test_each_database_finds_its_reader_and_a_foreign_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(MLFLOW.read_bytes())
    (tmp_path / "b.db").write_bytes(TRACKIO.read_bytes())
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        connection.executescript("CREATE TABLE trials (a); INSERT INTO trials VALUES (1)")
    frame = ingest_run(tmp_path).scan("sources").collect().sort("path")
    assert frame["ingester"].to_list() == ["mlflow_sqlite", "trackio_sqlite", "not_read"]
    assert "none of its tables" in frame["reason"][2]


def test_a_database_in_use_is_read_without_touching_anything_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    path.write_bytes(TRACKIO.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('r1', '', 'owl', 9, '{\"a\": 1}')"
        )
        connection.commit()
        before = {p.name: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest()) for p in tmp_path.iterdir()}
        report = triage(tmp_path)
        after = {p.name: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).digest()) for p in tmp_path.iterdir()}
    assert after == before
    files = {file.source: file for file in report.coverage.files}
    assert (files["live.db-wal"].status, files["live.db-wal"].ingester) == ("read", "sqlite_wal")
    assert "shared memory" in files["live.db-shm"].reason


def test_points_below_a_damaged_root_are_found_again(run: Run, run_fixture: Run) -> None:
    whole = run_fixture(mlflow_sqlite.read, "mlflow_sqlite/crash-nan").table("metrics")
    data = MLFLOW.read_bytes()
    ((root,),) = query(MLFLOW, "SELECT rootpage FROM sqlite_schema WHERE name = 'metrics'")
    wrote = run(mlflow_sqlite.read, "mlflow.db", data[: (root - 1) * 1024] + b"\xaa" * 1024 + data[root * 1024 :])
    assert [issue.code for issue in wrote.issues] == ["recovered", "damaged"]
    columns = ["raw_name", "attempt", "step", "value"]
    assert sorted(map(str, wrote.table("metrics").select(columns).rows())) == sorted(
        map(str, whole.select(columns).rows())
    )
