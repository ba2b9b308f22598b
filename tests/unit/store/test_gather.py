"""Rows of many files are few frames, in the order of the files; a run lets go of them when it is judged."""

from __future__ import annotations

import gc
import random
import weakref
from pathlib import Path

import polars as pl
import pytest

from forensics import api, pipeline
from forensics.cli._judge import Asked, judged
from forensics.errors import UsageError
from forensics.model import Source
from forensics.store import gather
from forensics.store.gather import Rows, issues_of, run_from, stored_coverage
from forensics.store.run import Run
from forensics.store.schema import conform
from forensics.store.sink import SourceSink


def frames(count: int, table: str = "metrics") -> list[pl.DataFrame]:
    value = {"value": [0.5, float("nan")]} if table == "metrics" else {}
    rows = [{"seq": [n, n + 1000], "source": [f"rank_{n}.log"] * 2, **value} for n in range(count)]
    return [conform(table, pl.DataFrame(columns)) for columns in rows]


@pytest.mark.parametrize("table", ["metrics", "events"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9, 26, 27, 28, 80])
def test_rows_keep_their_order_whatever_was_joined_on_the_way(
    monkeypatch: pytest.MonkeyPatch, table: str, count: int
) -> None:
    monkeypatch.setattr(gather, "_BATCH_FRAMES", 3)
    rows, given = Rows(table), pl.concat(frames(count, table))
    for frame in frames(count, table):
        rows.add(frame)
    made = run_from("run", {table: rows})
    whole = made.frames[table].collect()
    assert whole.equals(given)
    assert whole.schema == given.schema
    assert (made.packed_metrics().own if table == "metrics" else whole).n_chunks() == 1


def test_rows_that_are_finished_together_are_those_that_are_finished_file_by_file() -> None:
    """Readers give other columns, nulls without a type, a class of their own, and a secret."""
    secret = "hf_" + "".join(random.Random(3).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=34))
    given: list[dict[str, object]] = [
        {"seq": [0, 1], "value": [0.5, float("nan")], "raw_name": ["loss", secret]},
        {"seq": [0], "step": [None], "value": [float("-inf")], "rank": [1 << 40]},
        {"seq": [0], "value": [None], "value_class": ["null-suspected-nan"]},
        {"seq": [0], "value": [2.0], "attempt": [3], "epoch": [1.5]},
        {"seq": list(range(2_000)), "value": [1.0] * 2_000},
        {"seq": [7], "t_ns": [5], "value": [None]},
    ]
    rows, alone = Rows("metrics"), []
    for number, columns in enumerate(given):
        sinks = [SourceSink(Source(f"file-{number}", 1_000_000)) for _ in range(2)]
        for sink in sinks:
            sink.rows("metrics", {name: values for name, values in columns.items() if isinstance(values, list)})
        for _, frame in sinks[0].handed_over():
            rows.add(frame)
        alone.append(sinks[1].frames()["metrics"])
    whole = run_from("run", {"metrics": rows}).collect("metrics")
    assert whole.equals(pl.concat(alone))
    assert whole.schema == alone[0].schema
    assert secret not in str(whole.rows())
    assert set(whole["value_class"]) == {"finite", "nan", "-inf", "null-suspected-nan", "null"}


def test_parts_on_disk_stay_there_and_between_the_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "_BATCH_FRAMES", 2)
    rows = Rows("metrics")
    first, second, third, fourth = frames(4)
    for frame in (first, second, third.lazy(), fourth):
        rows.add(frame)
    run = run_from("run", {"metrics": rows})
    assert run.collect("metrics").equals(pl.concat(frames(4)))
    assert not run.held


def test_a_run_without_a_loss_has_empty_tables_of_the_schema(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    run = pipeline.ingest_run(tmp_path / "none")
    assert (stored_coverage(run).files, issues_of(run)) == ((), ())
    assert run.collect("issues").columns == ["source", "byte", "line", "code", "message", "count"]


def test_of_many_runs_only_those_in_work_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"run-{n}" for n in range(8)]
    for path in paths:
        path.mkdir()
        (path / "metrics.jsonl").write_text("".join(f'{{"step": {n}, "loss": 2.5}}\n' for n in range(1, 40)))
    read: list[weakref.ref[Run]] = []
    ingest = pipeline.ingest_run

    def noted(*given: object, **named: object) -> Run:
        gc.collect()
        # a cache of the two latest is allowed; it does not grow with the number of runs
        assert sum(one() is not None for one in read) <= 2
        run = ingest(*given, **named)  # type: ignore[arg-type] # handed on
        read.append(weakref.ref(run))
        return run

    monkeypatch.setattr(pipeline, "ingest_run", noted)
    _, reports = judged(Asked(tuple(paths)))
    assert [report.run for report in reports] == list(map(str, paths))


def test_an_empty_path_never_means_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (api.open_run, api.triage):
        with pytest.raises(UsageError, match="is empty"):
            call("")
    with pytest.raises(UsageError, match="is empty"):
        api.open_run(tmp_path, store="")
    assert list(tmp_path.iterdir()) == []
