"""Supervised fine-tuning: loss level, gradient norm, plateau, spikes, overfitting, schedule, with their remedies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import (
    ADAPTER,
    FINE_TUNING,
    Value,
    at,
    cosine,
    falling,
    noisy,
    spread,
    supervised,
    trainer,
)

if TYPE_CHECKING:
    from pathlib import Path

PLATEAU = noisy(falling(3.4, 2.6, 8), 0.03)


def run_of(folder: Path, values: dict[str, Value], settings: str, records: int = 200) -> Path:
    return written(folder, {"train.log": trainer(records, values), "config.yaml": settings})


@pytest.mark.parametrize("settings", [ADAPTER, FINE_TUNING])
def test_a_healthy_fine_tuning_is_healthy(tmp_path: Path, settings: str) -> None:
    assert told(run_of(tmp_path, supervised(), settings)).startswith("HEALTHY")


@pytest.mark.parametrize("settings", [ADAPTER, FINE_TUNING])
def test_a_loss_far_above_that_of_chat_data_asks_for_the_mask_and_the_template(tmp_path: Path, settings: str) -> None:
    text = told(run_of(tmp_path, supervised(loss=noisy(falling(6.0, 5.2), 0.05)), settings))
    assert text.startswith("SUSPECT learning")
    assert "(finetune_loss_high, confidence" in text
    assert "Decode a few samples with their label mask" in text


def test_a_high_loss_without_a_word_of_fine_tuning_is_left_alone(tmp_path: Path) -> None:
    run = run_of(tmp_path, supervised(loss=noisy(falling(6.0, 5.2), 0.05)), "lr: 0.0002\n")
    assert not any(f.rule in {"LRN006", "LRN017"} and f.severity.value != "info" for f in report(run).findings)


def test_a_loss_near_zero_is_learned_by_heart(tmp_path: Path) -> None:
    text = told(run_of(tmp_path, supervised(loss=falling(1.9, 0.01, 15)), FINE_TUNING + "val_set_size: 0.01\n"))
    assert "(finetune_loss_low, confidence" in text
    assert "Train for fewer epochs (now num_epochs = 3" in text
    assert "held out, 5 % (0.05) say" in text


def test_an_easy_task_whose_evaluation_is_as_low_is_not(tmp_path: Path) -> None:
    log = trainer(200, supervised(loss=falling(1.9, 0.01, 15)), evals=falling(1.9, 0.012, 15))
    assert told(written(tmp_path, {"train.log": log, "config.yaml": FINE_TUNING})).startswith("HEALTHY")


@pytest.mark.parametrize(("places", "outcome"), [({60, 90, 130}, "SUSPECT"), ({60, 90}, "HEALTHY")])
def test_gradient_norms_above_a_hundred_are_an_instability_from_the_third_on(
    tmp_path: Path, places: set[int], outcome: str
) -> None:
    text = told(run_of(tmp_path, supervised(norm=at(places, spread(1.2), 150.0)), ADAPTER))
    assert text.startswith(outcome)
    if outcome == "SUSPECT":
        assert "grad_norm is above 100 3 times, 150 first at step 61" in text
        assert "Lower the learning rate 2 to 5 times" in text
        assert "Clip the global gradient norm at 1.0" in text


@pytest.mark.parametrize(("level", "outcome"), [(14.0, "SUSPECT"), (7.0, "HEALTHY")])
def test_a_gradient_norm_above_its_range_throughout_is_told(tmp_path: Path, level: float, outcome: str) -> None:
    text = told(run_of(tmp_path, supervised(norm=spread(level)), ADAPTER))
    assert text.startswith(outcome)
    assert ("above its healthy range" in text) == (outcome == "SUSPECT")


@pytest.mark.parametrize(
    ("settings", "peak", "cause", "fix"),
    [
        (ADAPTER, 2e-5, "lr_low", "Raise the peak learning rate 2 to 5 times"),
        (ADAPTER, 2e-4, "plateau", "Compare three learning rates"),
        (FINE_TUNING, 1e-6, "lr_low", "usual are 1e-5 to 5e-5 for full fine-tuning"),
        (FINE_TUNING, 2e-5, "plateau", "Compare three learning rates"),
        (ADAPTER + "train_on_inputs: true\n", 2e-4, "labels_unmasked", "train_on_inputs: false"),
        (ADAPTER + "train_on_inputs: false\n", 2e-4, "plateau", "Compare three learning rates"),
        (ADAPTER + "weight_decay: 0.3\n", 2e-4, "weight_decay_high", "Lower the weight decay to 0.01"),
        (ADAPTER + "warmup_steps: 2\n", 2e-4, "warmup_short", "Warm up over 5 to 10 % of the steps"),
        (ADAPTER + "warmup_steps: 12\n", 2e-4, "plateau", "Compare three learning rates"),
    ],
)
def test_a_plateau_names_the_setting_that_can_hold_the_loss_up(
    tmp_path: Path, settings: str, peak: float, cause: str, fix: str
) -> None:
    values = supervised(loss=PLATEAU, rate=cosine(peak, 200))
    text = told(run_of(tmp_path, values, settings))
    assert text.startswith("SUSPECT learning")
    assert "Loss stayed at 2." in text
    assert f"({cause}, confidence" in text
    assert fix in text


@pytest.mark.parametrize(("warmup", "leads"), [("0.0", "LRN006"), ("0.06", "LRN017")])
def test_a_plateau_with_its_reason_leads_the_level_that_it_has(tmp_path: Path, warmup: str, leads: str) -> None:
    values = supervised(loss=noisy(falling(4.1, 3.2, 6.0), 0.02), rate=cosine(2e-4, 800))
    columns = {"step": range(1, 201)} | {name: [value(n) for n in range(200)] for name, value in values.items()}
    settings = ADAPTER + f"warmup_ratio: {warmup}\n"
    files = {"history.json": json.dumps(columns, default=list), "config.yaml": settings}
    said = report(written(tmp_path, files))
    assert said.verdict.lead is not None
    assert said.findings[said.verdict.lead].rule.startswith(leads)


def test_a_plateau_at_the_level_of_chat_data_is_no_symptom(tmp_path: Path) -> None:
    values = supervised(loss=noisy(falling(1.9, 1.1, 8), 0.03), rate=cosine(2e-5, 200))
    assert told(run_of(tmp_path, values, ADAPTER)).startswith("HEALTHY")


def test_overfitting_shows_each_setting_that_bears_on_it(tmp_path: Path) -> None:
    settings = ADAPTER.replace("lora_r: 16", "lora_r: 64").replace("num_epochs: 3", "num_epochs: 10")
    settings += "lora_dropout: 0.0\nweight_decay: 0.0\nval_set_size: 0.01\n"
    evals: Value = lambda n: 1.2 + 0.4 * 2.7 ** (-n / 30) + max(0.0, (n - 90) / 210) * 0.7  # noqa: E731 - as the others
    log = trainer(300, supervised(300, loss=noisy(falling(1.7, 0.1, 90), 0.02)), epochs=10, evals=evals)
    run = written(tmp_path, {"train.log": log, "config.yaml": settings})
    text = told(run)
    assert "(overfit, confidence" in text
    assert "train for fewer epochs, and hold out 5 % of the data for the evaluation" in text
    assert "(now num_epochs = 10" in text
    assert "Use a smaller adapter: rank 8 to 32 (now lora_r = 64" in text
    assert "dropout of the adapter to 0.05 or more (now lora_dropout = 0.0" in text
    actions = " ".join(action.text for action in report(run).verdict.actions)
    assert "Raise the weight decay to between 0.01 and 0.1" in actions


@pytest.mark.parametrize(("climb", "outcome"), [(0.004, "FAILED learning"), (0.0, "HEALTHY")])
def test_overfitting_is_placed_by_the_epoch_where_no_step_is_printed(
    tmp_path: Path, climb: float, outcome: str
) -> None:
    evals = noisy(lambda n: 1.1 + climb * max(0, n - 60), 0.003)
    log = trainer(300, supervised(300, loss=noisy(falling(1.8, 0.2, 90), 0.02)), evals=evals, every=15)
    told_steps = "".join(line for line in log.splitlines(keepends=True) if line.startswith("{"))
    text = told(written(tmp_path, {"train.log": told_steps, "config.yaml": ADAPTER}))
    assert text.startswith(outcome)
    assert ("at epoch 0." in text) is (climb > 0)


@pytest.mark.parametrize(("template", "outcome"), [("chatml", "SUSPECT"), ("{% for m in messages %}", "HEALTHY")])
def test_a_template_of_conversations_by_its_name_says_that_a_model_is_tuned(
    tmp_path: Path, template: str, outcome: str
) -> None:
    text = told(run_of(tmp_path, supervised(norm=spread(14.0)), f"base_model: m\nchat_template: '{template}'\n"))
    assert text.startswith(outcome)
