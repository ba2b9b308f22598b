"""A tracker's database that keeps several runs is told as several; a run that was started again in it is one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.case.runs import only, parts, split
from forensics.case.settings import settings
from forensics.errors import UsageError

T0_MS = 1_740_000_000_000


@dataclass(frozen=True)
class Logged:
    """A run of a database: its name, how it ended, its steps, and the second at which it began."""

    name: str
    status: str = "FINISHED"
    first: int = 0
    last: int = 60
    began_s: int = 0


def database(folder: Path, *runs: Logged) -> Path:
    with closing(sqlite3.connect(folder / "mlflow.db")) as db:
        db.execute("CREATE TABLE runs (run_uuid, name, status, start_time, end_time, source_version)")
        db.execute("CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan)")
        db.execute("CREATE TABLE params (key, value, run_uuid)")
        for number, run in enumerate(runs):
            uuid, began = f"{number:032x}", T0_MS + 1000 * run.began_s
            db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, '')", (uuid, run.name, run.status, began, began))
            db.execute("INSERT INTO params VALUES ('learning_rate', ?, ?)", (f"0.00{number + 1}", uuid))
            for step in range(run.first, run.last + 1):
                at, loss = began + 1000 * (step - run.first), 3 - 0.01 * step + 0.01 * ((step * 7 + number) % 5)
                db.execute("INSERT INTO metrics VALUES ('loss', ?, ?, ?, ?, 0)", (loss, at, uuid, step))
        db.commit()
    return folder


def names(place: Path) -> list[str]:
    return [part.folder for part in parts(pipeline.ingest_run(place))]


BOTH = ["mlflow.db:a", "mlflow.db:b"]


def test_runs_that_each_came_to_their_end_are_several(tmp_path: Path) -> None:
    assert names(database(tmp_path, Logged("a"), Logged("b", began_s=100))) == BOTH


def test_runs_that_trained_at_the_same_time_are_several_though_one_failed(tmp_path: Path) -> None:
    assert names(database(tmp_path, Logged("a", "FAILED", last=30), Logged("b", began_s=10))) == BOTH


def test_a_run_that_failed_and_was_started_again_is_one(tmp_path: Path) -> None:
    assert names(database(tmp_path, Logged("a", "FAILED", last=30), Logged("b", began_s=100))) == []


def test_a_run_that_goes_on_from_another_is_one(tmp_path: Path) -> None:
    assert names(database(tmp_path, Logged("a", last=30), Logged("b", first=31, began_s=100))) == []


def test_a_database_beside_the_log_of_a_run_is_a_store_of_it(tmp_path: Path) -> None:
    lines = (f"step {n} | loss: {3 - 0.01 * n:.4f}" for n in range(1, 61))
    (tmp_path / "train.log").write_text("\n".join(lines))
    assert names(database(tmp_path, Logged("a"), Logged("b", began_s=100))) == []


def test_runs_of_one_name_are_told_by_their_ids(tmp_path: Path) -> None:
    assert names(database(tmp_path, Logged("a"), Logged("a", began_s=100))) == [f"mlflow.db:{n:032x}" for n in range(2)]


def test_each_run_has_its_own_records_settings_and_end(tmp_path: Path) -> None:
    database(tmp_path, Logged("a", last=60), Logged("b", "FAILED", last=80, began_s=100))
    a, b = split(pipeline.ingest_run(tmp_path))
    assert [settings(run)["lr"].value for run in (a, b)] == ["0.001", "0.002"]
    assert [run.scan("metrics").collect()["step"].max() for run in (a, b)] == [60, 80]
    assert [pipeline.report_of(run).verdict.outcome.value for run in (a, b)] == ["healthy", "cannot_say"]


def test_a_question_about_one_run_is_refused_with_the_list(tmp_path: Path) -> None:
    database(tmp_path, Logged("a"), Logged("b", began_s=100))
    with pytest.raises(UsageError, match=r"holds 2 runs: mlflow.db:a, mlflow.db:b"):
        only(pipeline.ingest_run(tmp_path))
