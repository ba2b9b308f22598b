"""Trainer states: the history with its lines, what the log filter hid, and what a cut file still tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.metrics.trainer_state import read

Run = Callable[..., Any]


def test_the_history_becomes_points_with_the_line_of_each_number(run_fixture: Run) -> None:
    metrics = run_fixture(read, "trainer_state/ok-finished").table("metrics")
    first = metrics.filter(pl.col("name") == "loss").row(0, named=True)
    assert (first["step"], first["epoch"], first["attempt"], first["line"]) == (5, 0.1, 0, 11)
    assert set(metrics["name"]) == {"loss", "grad_norm", "lr", "eval_loss"}


def test_a_zero_loss_beside_a_nan_norm_is_marked_as_filtered(run_fixture: Run) -> None:
    metrics = run_fixture(read, "trainer_state/crash-nan-filtered").table("metrics")
    hidden = metrics.filter(pl.col("value_class") == "filtered-by-writer")
    assert hidden.select("name", "step", "value").rows() == [("loss", s, 0.0) for s in (45, 50, 55, 60)]
    assert metrics.filter((pl.col("name") == "grad_norm") & (pl.col("value_class") == "nan")).height == 4


def test_a_zero_loss_with_a_finite_norm_is_a_loss_of_zero(run: Run) -> None:
    data = b'{"log_history": [{"loss": 0, "grad_norm": 0.0, "step": 3}]}'
    assert run(read, "trainer_state.json", data).table("metrics")["value_class"].to_list() == ["finite", "finite"]


def test_progress_and_settings_are_facts(run_fixture: Run) -> None:
    facts = run_fixture(read, "trainer_state/ok-finished").table("facts")
    assert ("max_steps", "100", "progress") in facts.select("key", "value", "family").rows()
    assert ("logging_steps", "5", "config") in facts.select("key", "value", "family").rows()


def test_the_checkpoint_it_stands_in_is_stated_and_the_repeated_history_marked(run_fixture: Run) -> None:
    wrote = run_fixture(read, "trainer_state/ok-in-checkpoint")
    rows = wrote.table("checkpoints").select("step", "path", "kind", "complete").rows()
    assert rows == [(40, "checkpoint-40", "directory", None)]
    assert wrote.coverage.format == "trainer_state in a checkpoint"


def test_a_cut_state_gives_its_whole_records_and_an_incomplete_checkpoint(run_fixture: Run) -> None:
    wrote = run_fixture(read, "trainer_state/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.coverage.skipped_bytes > 0
    assert wrote.table("checkpoints")["complete"].to_list() == [False]
    assert len(wrote.points("loss")) > 5


def test_no_cut_loses_a_record_before_it(run: Run, run_fixture: Run) -> None:
    whole = run_fixture(read, "trainer_state/ok-in-checkpoint").table("metrics").rows()
    data = (
        b'{"log_history": [\n' + b",\n".join(b'{"loss": %d.5, "step": %d}' % (i, i) for i in range(64)) + b"]}\n"
    ) * 1
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("}")][:-1]
    for cut in range(20, len(data), 7):
        try:
            found = run(read, "trainer_state.json", data[:cut]).table("metrics").height
        except NotMine:
            found = 0
        assert found >= sum(end <= cut for end in ends)
    assert whole


def test_a_record_without_a_step_is_kept_with_none(run: Run) -> None:
    data = b'{"log_history": [{"loss": 1.5, "epoch": 0.5}, "no record", {"loss": null, "step": 2}]}'
    rows = run(read, "trainer_state.json", data).table("metrics").select("step", "value", "value_class").rows()
    assert rows == [(None, 1.5, "finite"), (2, None, "null")]


def test_a_state_that_was_saved_under_another_name_is_read(run: Run) -> None:
    data = b'{"epoch": 1.0, "global_step": 3, "log_history": [{"loss": 1.5, "step": 3}]}'
    assert run(read, "run7_logs.json", data).table("metrics")["value"].to_list() == [1.5]
    with pytest.raises(NotMine):
        run(read, "run7_logs.json", b'{"notes": "' + b"x" * 5000 + b'", "log_history": [{"loss": 1.5, "step": 3}]}')


@pytest.mark.parametrize("data", [b"{}", b"[1]", b"text", b'{"log_history": 3}'])
def test_other_content_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "trainer_state.json", data)


def test_a_record_without_a_step_stands_at_the_step_before_it(run_fixture: Run) -> None:
    metrics = run_fixture(read, "trainer_state/ok-without-step").table("metrics")
    own = metrics.filter(pl.col("raw_name") == "router_entropy").row(0, named=True)
    assert (own["step"], own["gstep"], own["epoch"]) == (None, 20, 0.4)
