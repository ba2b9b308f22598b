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
