"""Folds of one run: none goes on from another, so what one of them lost is not over with it."""

from __future__ import annotations

from math import exp
from pathlib import Path
from random import Random

import pytest

from forensics.model import Outcome
from tests.unit.truth._runs import said


def table(name: str, *, collapsed: int | None) -> list[str]:
    noise = Random(5)
    lines = [f"{name} epoch train_loss val_loss val_auc"]
    for fold in range(4):
        for epoch in range(12):
            gone = fold == collapsed and epoch >= 3
            loss = 0.693 if gone else 0.12 + 0.5 * exp(-epoch / 3)
            auc = 0.5 if gone else 0.97 - 0.2 * exp(-epoch / 3)
            told = (loss + noise.gauss(0, 0.004), loss + 0.1 + noise.gauss(0, 0.004), auc)
            lines.append(f"{fold:4d} {epoch:5d} {told[0]:10.4f} {told[1]:8.4f} {told[2]:7.4f}")
    return [*lines, "training finished"]


@pytest.mark.parametrize(
    ("name", "collapsed", "outcome"),
    [
        ("fold", 2, Outcome.FAILED),
        ("fold", None, Outcome.HEALTHY),
        ("try", 2, Outcome.HEALTHY),  # a later one is judged instead
    ],
)
def test_a_fold_that_collapsed_is_judged_though_others_came_after_it(
    tmp_path: Path, name: str, collapsed: int | None, outcome: Outcome
) -> None:
    verdict = said(tmp_path, table(name, collapsed=collapsed))
    assert verdict.outcome is outcome
    assert verdict.cause != "overfit"  # the losses of other folds fell meanwhile
