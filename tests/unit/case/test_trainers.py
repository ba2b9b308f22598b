"""What is known of a trainer is read where a run is judged: what its log hides, which updates it skips."""

from __future__ import annotations

import math

import polars as pl
import pytest

from forensics.analyses.nan.origin import origin
from forensics.case.trainers import trainers, trainers_by_source
from forensics.model import Confidence
from forensics.pipeline import report_of
from forensics.rules.nan.shown import filtered_by_writer, loss_column_gone
from forensics.store.run import Run, run_of

NAN = math.nan
LOG = "train.log"


def written_by(form: str, metrics: dict[str, dict[int, float]], saves: tuple[int, ...] = ()) -> Run:
    rows = [
        {"source": LOG, "seq": step, "line": step, "step": step, "name": name, "raw_name": name, "value": value}
        for name, values in metrics.items()
        for step, value in values.items()
    ]
    saved = [{"source": LOG, "seq": step, "line": step, "kind": "committed", "step": step} for step in saves]
    tables = {
        "metrics": pl.DataFrame(rows),
        "sources": pl.DataFrame({"source": [LOG], "format": [form], "size": [9], "read": [9], "status": ["read"]}),
    }
    return run_of("run", {**tables, "checkpoints": pl.DataFrame(saved)} if saved else tables)


def test_the_trainers_of_a_source_are_those_of_its_format_in_its_order() -> None:
    run = written_by("hf_trainer+deepspeed+generic", {"loss": {1: 2.0}})
    assert [one.name for one in trainers_by_source(run)[LOG]] == ["hf_trainer", "deepspeed"]


def test_a_file_that_only_one_trainer_leaves_names_it() -> None:
    run = written_by("trainer_state", {"loss": {1: 2.0}})
    assert [one.name for one in trainers(run)] == ["hf_trainer"]


def test_a_run_of_no_known_trainer_has_none() -> None:
    assert trainers(written_by("text", {"loss": {1: 2.0}})) == ()
    assert trainers(Run("empty")) == ()


ZEROS = {"loss": {step: (0.0 if step > 60 else 2.0) for step in range(10, 101, 10)}}


@pytest.mark.parametrize(
    ("form", "confidence", "order"),
    [
        ("llama_factory", Confidence.HIGH, "Set logging_nan_inf_filter=False"),
        ("nanogpt", Confidence.MEDIUM, "Let the log show the loss as it is"),
    ],
)
def test_zeros_alone_are_certain_only_of_a_trainer_that_prints_a_number_for_nan(
    form: str, confidence: Confidence, order: str
) -> None:
    run = written_by(form, ZEROS)
    (found,) = filtered_by_writer(run)
    assert found.confidence is confidence
    rerun, show = report_of(run).verdict.actions[:2]
    assert rerun.text.startswith("Start again with a tenth of the learning rate, in bf16 or fp32")
    assert show.text.startswith(order)


@pytest.mark.parametrize(("form", "told"), [("hf_trainer", True), ("composer", False)])
def test_how_the_log_shows_nan_is_told_of_the_trainer_that_has_such_a_setting(form: str, *, told: bool) -> None:
    report = report_of(written_by(form, ZEROS))
    assert report.verdict.cause == "filtered_by_writer"
    said = [action.text for action in report.verdict.actions]
    assert any("logging_nan_inf_filter=False" in text for text in said) is told


def until(last: int, every: int = 10) -> range:
    return range(every, last + 1, every)


@pytest.mark.parametrize(("form", "confidence"), [("megatron", Confidence.HIGH), ("text", Confidence.MEDIUM)])
def test_a_loss_column_that_is_gone_is_certain_of_a_trainer_that_leaves_it_out(
    form: str, confidence: Confidence
) -> None:
    scale = dict.fromkeys(until(200), 1024.0)
    (found,) = loss_column_gone(written_by(form, {"loss": dict.fromkeys(until(100), 2.0), "loss_scale": scale}))
    assert found.confidence is confidence


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("fairseq", "fairseq skips an update whose gradient is not finite"),
        (
            "kempnerforge",
            "the loss of its own step is finite, that of the next is not known: look for NaN in it before use",
        ),
    ],
)
def test_a_checkpoint_of_the_last_clean_step_is_safe_where_updates_of_bad_gradients_are_skipped(
    form: str, why: str
) -> None:
    losses = {step: (NAN if step > 50 else 2.0) for step in until(100)}
    found = origin(written_by(form, {"loss": losses}, saves=(50,)))
    assert [(one.state, one.why) for one in found.checkpoints] == [("clean", why)]
