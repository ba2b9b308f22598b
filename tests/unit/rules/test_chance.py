"""Evaluations that stay where the model was before it learned, and those that only look like it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.model import Report

RISES = (0.30, 0.60, 0.80, 0.90, 0.95)
FALLS = (2.40, 1.10, 0.60, 0.30, 0.10)


def judged(place: Path, **columns: tuple[float, ...]) -> Report:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(("epoch", *columns)), *(f"{n},{','.join(map(str, row))}" for n, row in enumerate(rows, 1))]
    (place / "metrics.csv").write_text("\n".join(lines) + "\n")
    return pipeline.report_of(pipeline.ingest_run(place))


def told(report: Report) -> bool:
    return any(f.cause == "learned_for_training_only" for f in report.findings)


@pytest.mark.parametrize(
    ("scores", "is_told"),
    [
        ((0.24, 0.26, 0.25, 0.27, 0.25), True),
        ((24.0, 26.0, 25.0, 27.0, 25.0), True),  # in per cent, beside shares
        ((0.24, 0.26, 0.25, 0.30, 0.25), True),  # the best one is the first record of the training score
        ((0.24, 0.26, 0.25, 0.31, 0.25), False),
        ((0.20, 0.21, 0.23, 0.25, 0.27), False),  # it learns, if slowly
        ((0.0, 0.0, 0.0, 0.0, 0.0), False),  # which is another rule's
    ],
)
def test_a_score_that_never_leaves_the_level_of_before_is_told(
    tmp_path: Path, scores: tuple[float, ...], *, is_told: bool
) -> None:
    assert told(judged(tmp_path, accuracy=RISES, val_accuracy=scores)) is is_told


@pytest.mark.parametrize(("last", "is_told"), [(0.60, True), (0.59, False)])  # it must rise by 0.3
def test_a_training_score_that_hardly_rose_says_nothing(tmp_path: Path, last: float, *, is_told: bool) -> None:
    rises = (0.30, 0.35, 0.4, 0.5, last)
    assert told(judged(tmp_path, accuracy=rises, val_accuracy=(0.24, 0.25, 0.26, 0.25, 0.25))) is is_told


@pytest.mark.parametrize(("first", "is_told"), [(0.50, True), (0.55, True), (0.56, False)])
def test_a_guess_orders_half_of_the_pairs(tmp_path: Path, first: float, *, is_told: bool) -> None:
    scores = (first, 0.51, 0.50, 0.52, 0.51)
    assert told(judged(tmp_path, train_auc=(0.91, 0.95, 0.97, 0.98, 0.99), valid_auc=scores)) is is_told


@pytest.mark.parametrize(
    ("scores", "losses", "is_told"),
    [
        ((0.10, 0.11, 0.10, 0.09, 0.10), FALLS, True),
        ((0.12, 0.11, 0.10, 0.09, 0.10), FALLS, False),  # more than a guess by the first loss, 1.25 * exp(-2.4) = 0.113
        ((0.10, 0.11, 0.10, 0.09, 0.10), (*FALLS[:-1], 0.61), False),  # more than a quarter of the loss is left
        ((0.34, 0.35, 0.34, 0.33, 0.34), (0.99, 0.6, 0.3, 0.2, 0.1), False),  # two classes: it may know a little
    ],
)
def test_a_first_loss_tells_what_a_guess_scores(
    tmp_path: Path, scores: tuple[float, ...], losses: tuple[float, ...], *, is_told: bool
) -> None:
    assert told(judged(tmp_path, loss=losses, val_accuracy=scores)) is is_told


def test_one_evaluation_that_learned_clears_the_others(tmp_path: Path) -> None:
    flat, learned = (0.24, 0.26, 0.25, 0.27, 0.25), (0.3, 0.4, 0.5, 0.6, 0.6)
    assert not told(judged(tmp_path, accuracy=RISES, val_accuracy=flat, val_f1=learned))


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("Epoch: {e:03d}, Loss: {loss:.4f}, Train: {rises:.4f}, Val: {flat:.4f}, Test: {flat:.4f}", True),
        ("Epoch: {e:03d}, Loss: {loss:.4f}, Train: {loss:.4f}, Val: {flat:.4f}, Test: {flat:.4f}", False),  # errors
        ("Epoch: {e:03d}, Loss: {loss:.4f}, Train: {rises:.4f}, Val: {learns:.4f}, Test: {flat:.4f}", False),
    ],
)
def test_a_score_may_be_named_by_its_split_alone(tmp_path: Path, line: str, *, is_told: bool) -> None:
    rows = (
        {"e": e, "loss": 2 - e / 20, "rises": 0.2 + e / 50, "flat": 0.15, "learns": 0.15 + e / 60} for e in range(38)
    )
    (tmp_path / "gcn.txt").write_text("\n".join(line.format(**row) for row in rows) + "\n")
    assert told(pipeline.report_of(pipeline.ingest_run(tmp_path))) is is_told


@pytest.mark.parametrize(("best", "is_told"), [(0.24, True), (0.25, False)])
def test_scores_that_stay_are_cleared_by_one_that_rose_by_a_tenth_of_the_whole(
    tmp_path: Path, best: float, *, is_told: bool
) -> None:
    losses = tuple(2.0 * 0.8**at for at in range(10))  # it falls to a seventh
    scores = {"val_accuracy": (0.15,) * 10, "val_f1": (*(0.15,) * 5, 0.15, 0.2, best, 0.2, 0.2)}
    assert told(judged(tmp_path, loss=losses, **scores)) is is_told


def test_the_name_of_a_metric_begins_a_headline_as_it_is_printed(tmp_path: Path) -> None:
    rises = (20.0, 40.0, 60.0, 55.0, 40.0, 30.0, 20.0)
    report = judged(tmp_path, loss=(2.4, 1.1, 0.6, 0.5, 0.4, 0.3, 0.2), mIoU=rises)
    assert report.verdict.headline.startswith("mIoU fell from 55 ")


@pytest.mark.parametrize(
    ("before", "tasks", "is_told"),
    [
        ({"mmlu": 0.62, "arc_challenge": 0.53}, ("mmlu", "arc_challenge"), True),
        ({"mmlu": 0.62, "arc_challenge": 0.24}, ("mmlu", "arc_challenge"), False),
        ({"mmlu": 0.62}, ("mmlu",), False),
        ({}, ("mmlu", "arc_challenge"), False),
    ],
    ids=["both were above", "one was a guess before", "one task alone", "no earlier result"],
)
def test_two_tasks_at_chance_are_enough_where_both_were_above_it(
    tmp_path: Path, before: dict[str, float], tasks: tuple[str, ...], *, is_told: bool
) -> None:
    after = dict.fromkeys(tasks, 0.24)
    for name, scores in {"base": before, "tuned": after}.items():
        results = {task: {"acc": value, "n": 1200} for task, value in scores.items()}
        (tmp_path / f"eval_{name}.json").write_text(json.dumps({"model": name, "tasks": results}))
    findings = pipeline.report_of(pipeline.ingest_run(tmp_path)).findings
    assert any(f.cause == "at_chance" for f in findings) is is_told
