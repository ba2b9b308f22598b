"""The first advice on an exception: what its words, its class and its frames prove, and nothing beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, said, shape

CRASH = (Outcome.FAILED, Shape.CRASH)
INSTALLED = "/opt/env/lib/python3.11/site-packages"


def frame(function: str, file: str = "options.py") -> list[str]:
    return [f'  File "{file}", line 4, in {function}', "    step()"]


@pytest.mark.parametrize(
    ("function", "raised", "cause"),
    [
        ("validate_config", "ValueError: no quantization of an adapter", "settings_refused"),
        ("__post_init__", "AssertionError: two plans of one name", "settings_refused"),
        ("forward", "ValueError: no quantization of an adapter", "uncaught_exception"),
        ("validate_config", "KeyError: 'width'", "uncaught_exception"),
        ("forward", "ValueError: hidden size must be divisible by the heads", "settings_refused"),
        ("forward", "ValueError: too many values to unpack (expected 2)", "uncaught_exception"),
    ],
)
def test_settings_that_a_check_refuses_are_told_by_its_frame_or_its_words(
    tmp_path: Path, function: str, raised: str, cause: str
) -> None:
    verdict = said(tmp_path, [*TRACEBACK, *frame(function), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)
    assert verdict.actions[0].text.startswith(("Change the setting", "Do what the message asks")) == (
        cause == "settings_refused"
    )


@pytest.mark.parametrize(
    ("file", "cause"), [("torch/optim/adamw.py", "state_mismatch"), ("model.py", "shape_mismatch")]
)
def test_sizes_that_differ_inside_an_optimizer_are_those_of_its_state(tmp_path: Path, file: str, cause: str) -> None:
    raised = "RuntimeError: The size of tensor a (64) must match the size of tensor b (16) at non-singleton dimension 0"
    verdict = said(tmp_path, [*TRACEBACK, *frame("step", f"{INSTALLED}/{file}"), raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, cause)
    assert verdict.actions[0].text.startswith("Resume with the number of ranks") == (cause == "state_mismatch")


@pytest.mark.parametrize(
    ("file", "first"),
    [("model.py", "Open the last frame of your own code"), (f"{INSTALLED}/windmill/a.py", "Read the traceback above")],
)
def test_a_frame_of_ones_own_code_is_asked_for_only_where_one_is_shown(tmp_path: Path, file: str, first: str) -> None:
    verdict = said(tmp_path, [TRACEBACK[0], *frame("call", file), "KeyError: None"])
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(("name", "cause"), [("ReplayTrainer", "versions_apart"), ("TideModel", "uncaught_exception")])
def test_a_name_that_a_trainer_or_tokenizer_lacks_asks_for_the_versions(tmp_path: Path, name: str, cause: str) -> None:
    assert said(tmp_path, [*TRACEBACK, f"AttributeError: '{name}' object has no attribute 'llm'"]).cause == cause


def test_a_process_of_a_pool_that_vanished_asks_for_fewer_of_them(tmp_path: Path) -> None:
    raised = (
        "joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process was unexpectedly terminated."
    )
    verdict = said(tmp_path, [*TRACEBACK, raised])
    assert (*shape(verdict), verdict.cause) == (*CRASH, "pool_worker_died")
    assert verdict.actions[0].text.startswith("Run with fewer processes")


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        ("ScatterGather.cu:188: block: [6,0,0], thread: [4,0,0] Assertion `indexValue >= 0`", "label_out_of_range"),
        ("Loss.cu:94: operator(): block: [3,0,0], thread: [5,0,0] Assertion `weight > zero`", "device_assert"),
        ("Loss.cu:94: Assertion of a weight", ""),
    ],
)
def test_an_assertion_of_a_kernel_is_a_failure_by_itself(tmp_path: Path, place: str, cause: str) -> None:
    assert (
        said(tmp_path, ["  0%|          | 0/202 [00:00<?, ?it/s]", f"/b/aten/{place} failed."]).cause or ""
    ) == cause


def test_an_error_of_the_settings_whose_words_stand_below_its_class_is_one(tmp_path: Path) -> None:
    lines = ("omegaconf.errors.InterpolationKeyError:", "Interpolation key 'run_name' not found", "    full_key: dir")
    assert said(tmp_path, lines).cause == "bad_arguments"
