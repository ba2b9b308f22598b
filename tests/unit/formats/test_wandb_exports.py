"""Exports of W&B: charts and histories as CSV and JSON, what they lack stated, NaN told from what was not logged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.metrics import json_lines as metrics_jsonl
from forensics.formats.metrics import table as metrics_csv
from forensics.formats.wandb.exports import chart_csv as wandb_chart_csv
from forensics.formats.wandb.exports import history_csv as wandb_history_csv
from forensics.formats.wandb.exports import json_rows as wandb_export_json
from forensics.pipeline import ingest_run

Run = Callable[..., Any]
FIXTURES = Path(__file__).parents[3] / "fixtures"


def facts(wrote: Any) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in wrote.table("facts").select("key", "value").iter_rows()}


def test_a_chart_keeps_its_runs_apart_under_one_meaning(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_chart_csv.read, "wandb_chart_csv/ok-two-runs")
    metrics = wrote.table("metrics")
    loss = metrics.filter(pl.col("name") == "loss")
    assert set(loss["raw_name"]) == {"calm-lake-4 - train/loss", "wry, moon-5 - train/loss"}
    assert loss.filter(pl.col("raw_name").str.starts_with("wry"))["step"].to_list() == [0, 20, 40, 60]
    assert loss.row(0, named=True) | {"source": ""} == loss.row(0, named=True) | {"source": "", "line": 2, "value": 2.5}


def test_a_chart_is_stated_to_be_sampled_and_its_empty_columns_too(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_chart_csv.read, "wandb_chart_csv/ok-two-runs")
    assert [issue.code for issue in wrote.issues] == ["sampled-export", "column-empty"]
    told = facts(wrote)
    assert told["export.kind"] == "chart"
    assert told["export.sampled"] is True
    assert told["export.runs"] == ["calm-lake-4", "wry, moon-5"]


def test_the_bounds_of_a_bin_are_kept_where_they_differ(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_chart_csv.read, "wandb_chart_csv/ok-group-only")
    by_name = wrote.table("metrics").group_by("name", maintain_order=True).len()
    assert dict(by_name.iter_rows()) == {"width: 64": 8, "width: 64__MIN": 8, "width: 64__MAX": 8}
    upper = wrote.points("width: 64__MAX")
    assert [step for step, value in upper if math.isnan(value)] == [60]
    assert "8 of 8 points are bins" in wrote.issues[0].message


def test_a_chart_over_time_has_the_step_of_its_own_column(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_chart_csv.read, "wandb_chart_csv/ok-relative-time")
    assert wrote.points("eval_loss") == [(5 * k, 3 - k / 4) for k in range(6)]
    assert wrote.table("metrics")["t_ns"].null_count() == 6


def test_a_cut_chart_loses_its_last_row_and_says_so(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_chart_csv.read, "wandb_chart_csv/broken-cut")
    assert wrote.issues[0].code == "row-cut"
    assert wrote.coverage.skipped_bytes > 0
    assert max(wrote.table("metrics")["step"]) == 60


def test_an_empty_cell_of_a_history_was_not_logged(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_history_csv.read, "wandb_history_csv/ok-whole")
    assert [step for step, _ in wrote.points("eval_loss")] == [9, 19, 29, 39]
    assert len(wrote.points("loss")) == 40
    assert wrote.table("metrics")["value_class"].unique().to_list() == ["finite"]
    assert wrote.table("metrics")["t_ns"][0] == 1_760_000_000_000_000_000
    assert wrote.issues == []
    assert facts(wrote)["export.sampled"] is False


def test_five_hundred_rows_with_gaps_are_a_sample(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_history_csv.read, "wandb_history_csv/ok-sampled")
    assert [issue.code for issue in wrote.issues] == ["sampled-export"]
    told = facts(wrote)
    assert told["export.sampled"] is True
    steps = [step for step, _ in wrote.points("loss")]
    assert told["export.missing_steps"] == max(steps) - min(steps) + 1 - 500


def test_the_word_nan_of_a_history_is_a_nan(run_fixture: Run) -> None:
    loss = run_fixture(wandb_history_csv.read, "wandb_history_csv/crash-nan").points("loss")
    assert [step for step, value in loss if math.isnan(value)] == list(range(22, 30))


def test_the_step_of_the_trainer_is_kept_beside_that_of_the_store(run: Run) -> None:
    data = b"_step,trainer/global_step,loss\n0,49,2.0\n1,,1.9\n2,99,1.8\n"
    metrics = run(wandb_history_csv.read, "h.csv", data).table("metrics").filter(pl.col("name") == "loss")
    assert metrics.select("step", "gstep").rows() == [(0, 49), (1, 49), (2, 99)]


def test_two_runs_in_one_history_are_two_attempts_and_disorder_is_none(run: Run) -> None:
    joined = run(wandb_history_csv.read, "h.csv", b"_step,loss\n0,3\n1,2\n2,1\n0,3.5\n1,2.5\n")
    assert joined.table("metrics")["attempt"].to_list() == [0, 0, 0, 1, 1]
    mixed = run(wandb_history_csv.read, "h.csv", b"_step,loss\n0,3\n2,2\n1,1\n3,3.5\n")
    assert mixed.table("metrics")["attempt"].to_list() == [0, 0, 0, 0]
    assert [(issue.code, issue.count) for issue in mixed.issues] == [("rows-unsorted", 1)]


@pytest.mark.parametrize("case", ["ok-list", "ok-lines", "ok-columns", "ok-split"])
def test_every_form_of_the_same_rows_gives_the_same_numbers(case: str, run_fixture: Run) -> None:
    wrote = run_fixture(wandb_export_json.read, f"wandb_export_json/{case}")
    logged = wrote.table("metrics").filter(pl.col("value_class") != "null")
    loss = logged.filter(pl.col("name") == "loss").select("step", "value").rows()
    assert [step for step, value in loss if math.isnan(value)] == list(range(25, 30))
    assert loss[4] == (4, round(0.9 + 2 / (1 + 4 / 9), 5))
    assert logged.filter(pl.col("name") == "eval_loss")["step"].to_list() == [9, 19, 29]
    assert wrote.coverage.skipped_bytes == 0


def test_a_bare_nan_in_a_padded_document_is_a_null_and_never_a_nan(run_fixture: Run) -> None:
    metrics = run_fixture(wandb_export_json.read, "wandb_export_json/ok-list").table("metrics")
    padded = metrics.filter(pl.col("value_class") == "null")
    assert padded["raw_name"].unique().to_list() == ["eval/loss"]
    assert padded.height == 27
    assert padded["value"].null_count() == 27


def test_rows_of_a_list_have_the_line_that_they_begin_on(run_fixture: Run) -> None:
    metrics = run_fixture(wandb_export_json.read, "wandb_export_json/ok-list").table("metrics")
    assert metrics.filter(pl.col("name") == "loss")["line"].to_list()[:3] == [2, 9, 16]


def test_a_summary_becomes_facts_and_no_points(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_export_json.read, "wandb_export_json/ok-summary")
    assert facts(wrote) == {
        "summary._step": 29,
        "summary._runtime": 43.5,
        "summary.train/loss": "NaN",
        "summary.eval.loss.min": 1.5,
    }
    assert wrote.table("metrics").is_empty()


def test_a_cut_list_keeps_its_whole_records(run_fixture: Run) -> None:
    wrote = run_fixture(wandb_export_json.read, "wandb_export_json/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert [step for step, _ in wrote.points("loss")] == list(range(27))
    assert wrote.coverage.skipped_bytes > 0


def test_media_of_a_row_are_no_numbers_and_nested_ones_are_joined(run: Run) -> None:
    rows = [{"_step": 1, "img": {"_type": "image-file", "width": 3}, "loss": {"min": 0.5}, "ok": True, "x": None}]
    metrics = run(wandb_export_json.read, "h.json", json.dumps(rows).encode()).table("metrics")
    assert metrics.select("raw_name", "value").rows() == [("loss.min", 0.5)]


@pytest.mark.parametrize("data", [b"", b"[1, 2]", b"[]", b'{"loss": 1}', b'{"a": {"_step": "x"}}', b'["_step"]'])
def test_other_json_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(wandb_export_json.read, "x.json", data)


@pytest.mark.parametrize("read", [wandb_chart_csv.read, wandb_history_csv.read])
@pytest.mark.parametrize("data", [b"", b"step,loss\n1,2\n", b"Step,a - loss\nx,y\n", b"_step,loss\n", b"a\n1\n"])
def test_other_tables_are_left_to_others(data: bytes, read: Any, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "x.csv", data)


def test_the_general_readers_leave_exports_to_these(run: Run) -> None:
    for read, data in (
        (metrics_csv.read, b"_step,loss\n1,2\n"),
        (metrics_csv.read, b"Step,a - loss\n1,2\n"),
        (metrics_jsonl.read, b'{"_step": 1, "loss": 2}\n'),
    ):
        with pytest.raises(NotMine):
            run(read, "x", data)


@pytest.mark.parametrize(
    ("case", "reader"),
    [
        ("wandb_chart_csv/ok-two-runs", "wandb_chart_csv"),
        ("wandb_history_csv/ok-whole", "wandb_history_csv"),
        ("wandb_export_json/ok-lines", "wandb_export_json"),
        ("wandb_export_json/ok-columns", "wandb_export_json"),
        ("wandb_history_parquet/ok-artifact", "wandb_history_parquet"),
        ("monitor_csv/ok-successes", "monitor_csv"),
        ("hparams_yaml/ok-arguments", "hparams_yaml"),
        ("metrics_csv/ok-spinning-up", "metrics_csv"),
        ("metrics_jsonl/ok-openmmlab-old", "metrics_jsonl"),
    ],
)
def test_a_file_in_a_run_comes_to_its_reader(case: str, reader: str) -> None:
    run = ingest_run(FIXTURES / case)
    assert run.collect("sources")["ingester"].to_list() == [reader]
