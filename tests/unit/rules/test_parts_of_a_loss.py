"""A sum that is logged in its parts alone: each part of the training loss beside the same part of held-out data."""

from __future__ import annotations

import math
from collections.abc import Callable

from forensics.model import Report
from forensics.pipeline import ingest_bytes, report_of

Course = Callable[[int], float]


def falls(first: float, last: float) -> Course:
    return lambda epoch: last + (first - last) * math.exp(-epoch / 15)


def rises(first: float, last: float) -> Course:
    return lambda epoch: first + (last - first) * epoch / 99


def judged(**more: Course) -> Report:
    """Give the report of a hundred epochs of a detector, as its CSV has them; `/` is written `__`."""
    courses: dict[str, Course] = {
        "train/box_loss": falls(0.08, 0.02),
        "train/obj_loss": falls(0.03, 0.007),
        "train/cls_loss": lambda _: 0.0,
        "metrics/mAP_0.5": rises(0.1, 0.95),
        "val/box_loss": falls(0.09, 0.026),
        "val/obj_loss": lambda epoch: falls(0.04, 0.03)(epoch) + 0.0003 * max(0, epoch - 20),
        "val/cls_loss": lambda _: 0.0,
        **{name.replace("__", "/"): course for name, course in more.items()},
    }
    wobble = 1 + 1e-3
    lines = [",".join(["epoch", *courses])]
    for epoch in range(100):
        cells = (course(epoch) * (wobble if epoch % 2 else 1 / wobble) for course in courses.values())
        lines.append(",".join([str(epoch), *(f"{cell:.5g}" for cell in cells)]))
    return report_of(ingest_bytes("results.csv", "\n".join(lines).encode()))


def test_a_part_that_rises_on_held_out_data_while_the_score_rises_is_a_note() -> None:
    (hit,) = [one for one in judged().findings if one.rule == "LRN002"]
    assert (hit.severity.value, hit.cause) == ("info", "overfit")
    assert "val/obj_loss rose" in hit.title
    assert all(one.cause != "forgetting" for one in judged().findings)


def test_a_part_that_rises_on_held_out_data_while_the_score_stays_is_overfit() -> None:
    flat = judged(**{"metrics__mAP_0.5": lambda _: 0.41})
    (hit,) = [one for one in flat.findings if one.rule == "LRN002"]
    assert (hit.severity.value, hit.cause) == ("warning", "overfit")


def test_each_part_is_compared_with_itself() -> None:
    steady = judged(val__obj_loss=falls(0.04, 0.03), train__obj_loss=lambda _: 0.03)
    assert [one for one in steady.findings if one.rule == "LRN002"] == []


def test_a_part_that_turns_nan_is_a_failure_and_one_that_is_always_zero_is_none() -> None:
    broken = judged(train__box_loss=lambda epoch: 0.02 if epoch < 60 else math.nan)
    assert (broken.verdict.outcome.value, broken.verdict.shape) == ("failed", "nan")
    assert judged().verdict.outcome.value == "cannot_say"
