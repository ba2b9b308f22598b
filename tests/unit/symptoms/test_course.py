"""Symptoms that only the course of a run shows, each with a run that comes near it and stays quiet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import exp
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import ADAPTER, FINE_TUNING, Value, at, cosine, falling, noisy, spread, steps

if TYPE_CHECKING:
    from pathlib import Path

Files = dict[str, str]
DONE = "Training complete.\n"
SETTINGS = "vocab_size: 50304\nlr: 0.0003\n"


def run(records: int, values: Mapping[str, Value], settings: str = SETTINGS, *, tail: str = DONE) -> Files:
    return {"train.log": steps(records, **values) + tail, "config.yaml": settings}


def fresh(records: int, **changed: Value) -> dict[str, Value]:
    """A model that learns from nothing: its gradient norm falls with its loss."""
    norm: Value = lambda n: spread(0.5 + 2.5 * exp(-n / 16))(n)  # noqa: E731 - a value as the others
    return {"loss": noisy(falling(10.9, 3.1, records / 8), 0.03), "gnorm": norm, "lr": cosine(3e-4, records)} | changed


def tuned(records: int, loss: Value, peak: float = 1e-4, warmup: int = 10) -> dict[str, Value]:
    return {"loss": loss, "gnorm": spread(0.7), "lr": cosine(peak, 4 * records, warmup)}


def overflowing(first: int, falls: int) -> str:
    """A log whose scale is halved at each step from one on, until the loss is lost."""
    scale = 65536
    lines = steps(240, **fresh(240, loss=at(range(first + falls - 1, 240), noisy(falling(2.0, 1.0), 0.03)))).split("\n")
    for n in range(falls):
        line = f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {scale // 2}"
        lines.insert(first + 2 * n, line)
        scale //= 2
    return "\n".join(lines)


def detected(*at_steps: int) -> Files:
    """A healthy log in which a detector met a bad batch at some steps, and left their updates out."""
    lines = steps(240, **tuned(240, noisy(falling(1.9, 1.0), 0.03))).splitlines()
    for number in reversed(at_steps):
        lines.insert(number - 1, f"WARNING NaN/Inf in loss at step {number}: skipping the optimizer step")
    return {"train.log": "\n".join(lines) + "\n" + DONE}


def scored(**after: float) -> Files:
    """Results of the base model at step 0 and of what was trained from it."""

    def results(model: str, scores: Mapping[str, float]) -> str:
        of = {task: {"acc,none": score, "acc_stderr,none": 0.005} for task, score in scores.items()}
        more = {"n-samples": {task: {"original": 10000, "effective": 10000} for task in scores}}
        return json.dumps({"results": of, "configs": {}, "config": {"model_args": f"pretrained={model}"}, **more})

    base = {"gsm8k": 0.22, "hellaswag": 0.75, "mmlu": 0.63}
    return {
        "train.log": steps(300, **tuned(300, noisy(falling(1.9, 1.0), 0.03))) + DONE,
        "config.yaml": FINE_TUNING,
        "eval/step_0/results_2026-05-11T10-00-00.json": results("meta-llama/Llama-3.1-8B", base),
        "eval/step_300/results_2026-05-11T12-00-00.json": results("out/checkpoint-300", base | after),
    }


def compiled(bursts: tuple[int, ...], seconds: float) -> Files:
    """A log of compiled steps that hit the limit, with bursts of eight slow steps."""
    slow = {first + n for first in bursts for n in range(8)}
    pace: Value = lambda n: (seconds if n in slow else 0.6) * exp(Random(f"pace {n}").gauss(0, 0.01))  # noqa: E731
    lines = steps(600, **fresh(600, step_time=pace)).splitlines()
    lines.insert(
        260, "W0511 09:11:02 torch/_dynamo/convert_frame.py:1016] torch._dynamo hit config.recompile_limit (8)"
    )
    return {"train.log": "\n".join(lines) + "\n" + DONE, "config.yaml": SETTINGS}


def rising(n: int) -> float:
    return fresh(240)["gnorm"](n) * 1.5 ** max(0, n - 66)


LOST = range(74, 240)
SYMPTOMS: dict[str, tuple[Files, tuple[str, ...], Files]] = {
    "a gradient norm that falls as the model learns, and rises before the NaN": (
        run(240, fresh(240, loss=at(LOST, fresh(240)["loss"]), gnorm=at(LOST, rising)), tail=""),
        ("FAILED nan", "gradient norm rose", "The optimization blew up", "Clip the global gradient norm"),
        run(240, fresh(240)),
    ),
    "overflows up to the first loss that is lost": (
        {"train.log": overflowing(160, 12), "config.yaml": "fp16: true\n"},
        ("FAILED nan", "loss scale fell 12 times in a row", "bf16"),
        {},
    ),
    "a detector that leaves out two updates": (
        detected(131, 164),
        ("SUSPECT nan", "NaN detector fired at step 131", "those after step 131 are usable"),
        detected(131),
    ),
    "a fine-tuning that gains one task and loses others": (
        scored(gsm8k=0.61, hellaswag=0.58, mmlu=0.48),
        ("FAILED bad_eval", "the model forgets", "Lower the peak learning rate", "fewer epochs", "Freeze the earlier"),
        scored(gsm8k=0.61, hellaswag=0.745, mmlu=0.628),
    ),
    "recompilations that take the time": (
        compiled((250, 390, 500), 14.0),
        ("SUSPECT slowdown", "gave up", "take 47% of the time", "TORCH_LOGS=recompiles", "mark_dynamic"),
        compiled((250,), 3.0),
    ),
    "a fine-tuning whose loss is flat and high": (
        run(300, tuned(300, noisy(lambda _: 5.83, 0.05)), FINE_TUNING),
        ("SUSPECT learning", "did not fall", "detached graph", "softmax", "requires_grad"),
        run(300, tuned(300, noisy(falling(2.3, 1.9, 120.0), 0.05)), FINE_TUNING),
    ),
    "a loss that crawls": (
        run(300, fresh(300, loss=noisy(lambda n: 10.82 - 0.0006 * n, 0.02), lr=cosine(1e-7, 300)), "lr: 1e-7\n"),
        ("SUSPECT learning", "hardly fell", "learning rate is too low", "Raise the learning rate ten times"),
        run(300, fresh(300)),
    ),
    "a plateau after no warm-up": (
        run(300, tuned(300, noisy(falling(3.6, 2.9, 12.0), 0.02), warmup=1), ADAPTER + "warmup_steps: 0\n"),
        ("SUSPECT learning", "stayed at", "The warm-up is too short", "Warm up over 5 to 10 %"),
        run(300, tuned(300, noisy(falling(1.9, 1.0, 60.0), 0.02)), ADAPTER + "warmup_steps: 15\n"),
    ),
    "a first loss far above guessing that falls below it": (
        run(300, fresh(300, loss=noisy(falling(148.0, 5.9, 30.0), 0.1))),
        ("SUSPECT learning", "starts at", "ln(50304)", "Check the initialisation"),
        run(300, fresh(300)),
    ),
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_a_symptom_of_the_course_is_named_with_its_cause_and_its_remedy(tmp_path: Path, name: str) -> None:
    files, said, _ = SYMPTOMS[name]
    text = told(written(tmp_path, files))
    assert [words for words in said if words not in text] == [], text


@pytest.mark.parametrize("name", [name for name, (_, _, near) in SYMPTOMS.items() if near])
def test_what_comes_near_a_symptom_of_the_course_stays_quiet(tmp_path: Path, name: str) -> None:
    verdict = report(written(tmp_path, SYMPTOMS[name][2])).verdict
    assert verdict.outcome.value not in {"failed", "suspect"}, verdict.headline


@pytest.mark.parametrize(("first", "outcome"), [(16.5, "suspect"), (16.0, "healthy")])
def test_half_above_guessing_is_too_much_for_a_first_loss(tmp_path: Path, first: float, outcome: str) -> None:
    files = run(300, fresh(300, loss=noisy(falling(first, 5.9, 30.0), 0.01)))
    assert report(written(tmp_path, files)).verdict.outcome.value == outcome


@pytest.mark.parametrize(("last", "outcome"), [(59.0, "healthy"), (16.0, "healthy"), (11.5, "suspect")])
def test_a_loss_summed_over_tokens_is_no_bad_start(tmp_path: Path, last: float, outcome: str) -> None:
    files = run(300, fresh(300, loss=noisy(falling(148.0, last, 30.0), 0.1)))
    assert report(written(tmp_path, files)).verdict.outcome.value == outcome


@pytest.mark.parametrize(("end", "told_of"), [("", True), (DONE, False)])
def test_where_nothing_can_be_said_all_that_is_likely_is_noted(tmp_path: Path, end: str, *, told_of: bool) -> None:
    first, again = noisy(falling(3.0, 2.0), 0.03), noisy(falling(3.0, 2.0), 0.03, seed=1)
    lines = steps(240, loss=again).splitlines(keepends=True)[150:]
    log = steps(200, loss=first) + "Resuming from checkpoint out/step_150 at step 150\n" + "".join(lines) + end
    text = told(written(tmp_path, {"train.log": log}))
    assert text.startswith("HEALTHY" if end else "CANNOT SAY")
    assert "note 50 steps were done twice" in text
    assert ("note steps done twice differ: step 151" in text) is told_of


@pytest.mark.parametrize(("start", "cause"), [(0, "data_position_lost"), (150, "")])
def test_samples_that_are_counted_anew_after_a_resume_are_a_position_that_was_lost(
    tmp_path: Path, start: int, cause: str
) -> None:
    first = steps(150, loss=noisy(falling(3.0, 2.0), 0.03), samples_seen=lambda n: 512 * (n + 1))
    second = "".join(
        f"step={151 + n} loss={2 - n / 1000:.4f} samples_seen={512 * (start + n + 1)}\n" for n in range(60)
    )
    log = first + "Resuming from checkpoint out/step_150 at step 150\n" + second + DONE
    assert report(written(tmp_path, {"train.log": log})).verdict.cause == cause


def resumed(order: range, epoch: tuple[float, float] | None = None) -> str:
    """A loss of 150 records and 90 more after a resume, of the batches of an order."""
    batch = spread(1.0, 0.04)
    of = [""] * 2 if epoch is None else [f" epoch={value}" for value in epoch]
    lines = [f"step={n + 1} loss={2.1 * batch(n):.4f}{of[0]}\n" for n in range(150)]
    again = [f"step={151 + n} loss={2.0 * batch(at):.4f}{of[1]}\n" for n, at in enumerate(order)]
    return "".join([*lines, "Resuming from checkpoint out/step_150 at step 150\n", *again, DONE])


@pytest.mark.parametrize(
    ("order", "epoch", "cause"),
    [
        (range(90), None, "data_position_lost"),
        (range(90), (0, 0), "data_position_lost"),
        (range(90), (0, 1), ""),
        (range(150, 240), None, ""),
        (range(40, 130), None, ""),
    ],
)
def test_a_loss_whose_ups_and_downs_are_those_of_the_first_records_lost_its_data_position(
    tmp_path: Path, order: range, epoch: tuple[float, float] | None, cause: str
) -> None:
    verdict = report(written(tmp_path, {"train.log": resumed(order, epoch)})).verdict
    assert verdict.cause == cause


@pytest.mark.parametrize(("first", "told_of"), [(4.0, False), (2.0, True)])
def test_a_loss_that_begins_anew_as_a_whole_is_no_lost_data_position(
    tmp_path: Path, first: float, *, told_of: bool
) -> None:
    level, batch = falling(first, 2.0), spread(1.0, 0.03)
    values = [level(n) * batch(n) for n in range(150)]
    lines = [f"step={n + 1} loss={v:.4f}\n" for n, v in enumerate(values)]
    again = [f"step={n + 151} loss={v * 0.99:.4f}\n" for n, v in enumerate(values[:90])]
    log = "".join([*lines, "Resuming from checkpoint out/step_150 at step 150\n", *again, DONE])
    rules = {finding.rule for finding in report(written(tmp_path, {"train.log": log})).findings}
    assert ("RSM005" in rules) is told_of
