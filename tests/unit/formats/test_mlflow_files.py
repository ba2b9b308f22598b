"""MLflow's file store: lines of metrics in every layout, settings and endings, and whose a file is."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.errors import NotMine
from forensics.formats.trackers.mlflow_files import read
from forensics.pipeline import ingest_run

Run = Callable[..., Any]
FIXTURES = Path(__file__).parents[3] / "fixtures"
T = 1_741_000_000_000


def test_a_line_is_a_point_with_its_time_step_and_place(run: Run) -> None:
    data = b"%d 2.5 10\n%d 2.25 20\n" % (T, T + 1)
    first, second = run(read, "metrics/train/loss", data).table("metrics").rows(named=True)
    assert (first["name"], first["raw_name"], first["step"], first["value"]) == ("loss", "train/loss", 10, 2.5)
    assert (second["t_ns"], second["line"], second["byte"]) == ((T + 1) * 10**6, 2, 21)


@given(st.lists(st.tuples(st.floats(), st.integers(-5, 10**9)), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_value_is_read_as_it_was_written(run: Run, points: list[tuple[float, int]]) -> None:
    data = "".join(f"{T + i} {value!r} {step}\n" for i, (value, step) in enumerate(points)).encode()
    rows = run(read, "metrics/x", data).table("metrics").select("value", "step").rows()
    assert [(repr(v), s) for v, s in rows] == [(repr(v), s) for v, s in points]


def test_nan_and_infinities_keep_their_classes(run_fixture: Run) -> None:
    metrics = run_fixture(read, "mlflow_files/crash-nan/0/" + "3f" * 16 + "/metrics/loss").table("metrics")
    assert metrics["value_class"].tail(6).to_list() == ["+inf", "-inf", "nan", "nan", "nan", "nan"]


def test_the_first_layout_has_no_steps_and_gets_zero(run_fixture: Run) -> None:
    assert run_fixture(read, "mlflow_files/ok-two-columns").table("metrics")["step"].to_list() == [0, 0, 0]


def test_a_step_beside_a_data_set_is_kept(run_fixture: Run) -> None:
    assert run_fixture(read, "mlflow_files/ok-datasets").table("metrics")["step"].to_list() == list(range(6))


def test_a_step_that_falls_is_a_restart_unless_its_time_falls_too(run: Run) -> None:
    again = b"%d 1 5\n%d 1 6\n%d 1 3\n" % (T, T + 10, T + 20)
    assert run(read, "metrics/loss", again).table("metrics")["attempt"].to_list() == [0, 0, 1]
    late = b"%d 1 5\n%d 1 6\n%d 1 3\n%d 1 7\n" % (T, T + 10, T - 20, T + 30)
    assert run(read, "metrics/loss", late).table("metrics")["attempt"].to_list() == [0, 0, 0, 0]


def test_a_cut_last_line_and_zeroes_are_stated_and_cost_no_other_line(run_fixture: Run) -> None:
    cut = run_fixture(read, "mlflow_files/broken-cut")
    assert cut.table("metrics").height == 39
    assert cut.coverage.read_bytes + cut.coverage.skipped_bytes == cut.coverage.size_bytes
    zeroes = run_fixture(read, "mlflow_files/broken-zeroes")
    assert zeroes.table("metrics").height >= 35
    assert zeroes.issues
    assert zeroes.coverage.skipped_bytes >= 96


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("loss", b"12 2.5 3\n"),
        ("loss", b"step 1 loss 2\n" * 3 + b"%d 1.5 2\n" % T),
        ("loss", b""),
        ("metrics/x", b"\x80\x04binary\n"),
        ("params/model.bin", b"\0\1\2\3"),
        ("params/huge", b"x" * 50_000),
        ("meta.yaml", b"name: something\nversion: 2\n"),
        ("0/meta.yaml", b"artifact_location: x\nexperiment_id: '0'\n"),
    ],
)
def test_other_content_is_left_to_others(run: Run, path: str, data: bytes) -> None:
    with pytest.raises(NotMine):
        run(read, path, data)


def test_facts_name_no_person_and_no_folder(run: Run) -> None:
    tag = run(read, "r/tags/mlflow.source.name", b"/home/someone/train.py")
    assert tag.table("facts").select("key", "value", "family").rows() == [("mlflow.source.name", '"train.py"', "env")]
    assert run(read, "r/tags/mlflow.user", b"someone").table("facts").is_empty()
    assert run(read, "params/optimizer/lr", b"0.5").table("facts").row(0)[2:] == ("optimizer/lr", '"0.5"', "config")


def test_a_whole_store_is_read_by_this_ingester_whatever_its_metrics_are_called() -> None:
    frame = ingest_run(FIXTURES / "mlflow_files" / "ok-run").scan("sources").collect()
    assert set(frame["ingester"]) == {"mlflow_files"}
    run = ingest_run(FIXTURES / "mlflow_files" / "crash-nan")
    facts = run.scan("facts").filter(pl.col("key") == "mlflow.status").collect()
    assert facts["value"].to_list() == ['"FAILED"']
    assert math.isinf(run.scan("metrics").collect()["value"][30])


def test_a_line_of_digits_without_end_takes_no_time(run: Run) -> None:
    data = b"%d 1.5 1\n%d %s x\n" % (T, T, b"1" * 300_000)
    assert run(read, "metrics/loss", data).table("metrics").height == 1
