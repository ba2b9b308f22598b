"""A score that is lost for good is told: that of a task which another replaced, and a correlation that never rose."""

from __future__ import annotations

import json
from math import exp

import pytest

from forensics.model import Finding
from forensics.pipeline import ingest_bytes, report_of


def told(records: list[dict[str, float]]) -> Finding | None:
    report = report_of(ingest_bytes("metrics.jsonl", "".join(json.dumps(one) + "\n" for one in records).encode()))
    return next((one for one in report.findings if one.rule == "EVL022"), None)


def tasks(*, gained: bool) -> list[dict[str, float]]:
    """Task A is learned for 400 steps, then task B: the loss jumps, and comes back where B is learned."""
    records: list[dict[str, float]] = []
    for step in range(800):
        since = step if step < 400 else step - 400
        records.append(
            {"step": step, "loss": (0.02 if step < 400 else 0.04) + 1.5 * exp(-since / 30) + 0.004 * (step * 7 % 5)}
        )
        if step % 25 == 24:
            learned = 0.998 - 0.5 * exp(-since / 20)
            other = learned if gained and step > 400 else 0.43
            records.append({"step": step, "acc_task1": learned if step < 400 else 0.427, "acc_task2": other})
    return records


def test_a_task_that_another_one_replaced_is_forgotten_although_the_loss_jumped_between() -> None:
    found = told(tasks(gained=True))
    assert found is not None
    assert (found.cause, found.onset.step) == ("forgetting", 424)


def test_a_task_named_by_a_letter_is_forgotten_from_the_last_of_its_equal_scores_on() -> None:
    records = [
        {"step": at, "loss": 1.2 * exp(-at / 900), "task_a/acc": 0.9 - max(0, at - 500) * 0.0011}
        | {"task_b/acc": 0.3 + max(0, at - 500) * 0.0013}
        for at in range(0, 1000, 50)
    ]
    found = told(records)
    assert found is not None
    assert (found.cause, found.onset.step) == ("forgetting", 500)


def test_where_the_loss_left_its_level_and_nothing_else_rose_the_loss_explains_the_score() -> None:
    assert told(tasks(gained=False)) is None


@pytest.mark.parametrize(
    ("name", "cause"), [("cosine_spearman", "forgetting"), ("cosine_lag", None), ("val_acc", None)]
)
def test_a_correlation_that_falls_from_its_first_value_is_lost(name: str, cause: str | None) -> None:
    records: list[dict[str, float]] = []
    for at in range(1, 21):
        records += [{"step": 500 * at, name: 0.772 - max(0, at - 3) * 0.0175}]
    found = told(records)
    assert (found and found.cause) == cause


def test_a_correlation_that_keeps_its_level_is_sound() -> None:
    assert told([{"step": 500 * at, "cosine_spearman": 0.77 + 0.004 * (at * 3 % 4)} for at in range(1, 21)]) is None


def grpo() -> list[dict[str, float]]:
    """The reward rises all along, pass@1 falls from step 200 on, and from step 300 on answers are cut."""
    records: list[dict[str, float]] = []
    for step in range(0, 600, 5):
        own = {"reward": 0.2 + step / 900 + 0.01 * (step % 3), "reward_std": 0.2, "kl": 0.001 * step}
        cut = 0.01 if step < 300 else min(0.6, 0.31 + (step - 300) * 0.002)
        records.append({"step": step, **own, "completions/clipped_ratio": cut, "loss": 0.01})
        if step % 25 == 0:
            records[-1]["eval/pass@1"] = 0.41 + 0.0004 * step if step <= 200 else 0.49 - (step - 200) * 0.0008
    return records


def test_a_score_that_falls_before_answers_are_cut_leads() -> None:
    data = "".join(json.dumps(one) + "\n" for one in grpo()).encode()
    report = report_of(ingest_bytes("metrics.jsonl", data))
    assert {"EVL022", "RLX007"} <= {one.rule for one in report.findings}
    assert (report.verdict.cause, report.verdict.onset and report.verdict.onset.step) == ("reward_hacking", 200)


@pytest.mark.parametrize(
    ("gold", "name", "cause"),
    [
        (3.0, "reward/gold_rm", "reward_hacking"),
        (3.0, "true_reward", "reward_hacking"),
        (0.1, "reward/gold_rm", None),  # keeps its level
        (3.0, "reward/length_rm", None),  # another reward that is trained on
    ],
)
def test_a_gold_reward_that_falls_beside_a_rising_proxy_is_exploited(gold: float, name: str, cause: str | None) -> None:
    records: list[dict[str, float]] = []
    for step in range(0, 1000, 5):
        noise = 0.05 * (step * 7 % 3 - 1)
        own = {"reward/proxy_rm": -1 + step / 250 + noise, "objective/kl": 0.05 * step}
        records += [{"step": step, **own, name: (step / 100 if step < 300 else 3 - gold * (step - 300) / 700) + noise}]
    found = told(records)
    assert (found and found.cause) == cause


def course(name: str, first: float, best: float, last: float, *more: str) -> list[dict[str, float]]:
    """A metric that comes to its best within half of 50 evaluations and ends elsewhere, beside a loss that falls.

    One that is best at first goes on from there.
    """
    records: list[dict[str, float]] = []
    for at in range(50):
        falls = best + (first - best) * exp(-at / 5)
        value = falls if at < 25 else best + (last - best) * min(1, (at - 24) / 8)
        value = best + (last - best) * at / 49 if first == best else value
        noise = 1 + 0.01 * (at * 7 % 3 - 1)
        records += [{"step": at, "loss": 2 * exp(-at / 20) + 0.5, name: value * noise}]
        records[-1] |= dict.fromkeys(more, 2.6 * exp(-at / 20) + 1)
    return records


@pytest.mark.parametrize(
    ("name", "levels", "more", "cause"),
    [
        ("wer", (98, 14, 54), (), "cause_not_recorded"),
        ("wer", (98, 14, 20), (), None),
        ("fid", (270, 22, 200), ("loss_G", "loss_D"), "cause_not_recorded"),
        ("fid50k_full", (270, 22, 36), ("loss_G", "loss_D"), None),
        ("fid_step", (270, 22, 200), (), None),  # another metric
        ("val_mae", (3.0, 1.0, 1.2), (), None),
        ("val_loss_en", (1.9, 1.9, 3.8), ("val_loss_de",), "forgetting"),
        ("val_loss_en", (1.9, 1.9, 3.8), (), None),  # nothing was learned instead
        ("val_loss_en", (1.9, 1.9, 2.2), ("val_loss_de",), None),
        ("val/obj_loss", (1.9, 1.9, 3.8), ("val/cls_loss",), "overfitting"),  # two parts of one loss
    ],
)
def test_a_cost_that_an_evaluation_measured_is_lost_as_a_score_is(
    name: str, levels: tuple[float, float, float], more: tuple[str, ...], cause: str | None
) -> None:
    found = told(course(name, *levels, *more))
    assert (found and found.cause) == cause


@pytest.mark.parametrize(("name", "cause"), [("old_task_acc", "forgetting"), ("older_acc", None)])
def test_a_task_that_is_called_old_was_learned_before_the_first_record(name: str, cause: str | None) -> None:
    records = [
        {"step": at, "loss": 0.4 + exp(-at / 200), name: 0.88 - at * 0.0007, "new_task_acc": 0.2 + at * 0.0009}
        for at in range(0, 801, 40)
    ]
    found = told(records)
    assert (found.cause if found else None) == cause
