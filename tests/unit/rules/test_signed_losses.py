"""Losses that may be below zero: what gives back all that was learned, and what only moves."""

from __future__ import annotations

from math import exp
from pathlib import Path
from random import Random

import pytest

from forensics.api import triage
from forensics.model import Outcome


def judged(folder: Path, form: str, values: list[tuple[float, ...]]) -> list[str]:
    lines = [form.format(*own, s=10 * at) for at, own in enumerate(values, 1)]
    (folder / "train.log").write_text("\n".join([*lines, "Training complete"]) + "\n")
    report = triage(folder)
    told = [finding.rule.split(" ")[0] for finding in report.findings if finding.rule.startswith("LRN039")]
    assert (report.verdict.outcome is Outcome.HEALTHY) is not bool(told)
    return told


@pytest.mark.parametrize(
    ("rise", "stays_to", "is_told"),
    [(0.2, 90, True), (0.2, 60, True), (0.005, 60, False), (0.0, 60, False)],
)
def test_a_likelihood_that_rises_above_where_it_began_is_lost(
    tmp_path: Path, rise: float, stays_to: int, is_told: bool
) -> None:
    noise = Random(3)
    course = [
        (9 * exp(-at / 12) - 7 + rise * max(0, at - stays_to) * 2 + noise.gauss(0, 0.05),) for at in range(1, 121)
    ]
    assert judged(tmp_path, "step {s} nll {0:.4f}", course) == ["LRN039"] * is_told


@pytest.mark.parametrize(("factor", "is_told"), [(400.0, True), (30.0, False)])
def test_a_critic_bursts_where_the_last_losses_are_a_hundred_times_the_first_half(
    tmp_path: Path, factor: float, is_told: bool
) -> None:
    noise = Random(3)
    sizes = [12 if at < 60 else 12 + factor * 12 * min(1, (at - 60) / 20) for at in range(1, 101)]
    course = [(-size + noise.gauss(0, 0.4), noise.gauss(0, 2)) for size in sizes]
    lines = [f"step {10 * at} critic_loss {c:.3f} gen_loss {g:.3f}" for at, (c, g) in enumerate(course, 1)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    told = [finding.rule for finding in triage(tmp_path).findings if finding.rule.startswith("LRN039")]
    assert bool(told) is is_told
