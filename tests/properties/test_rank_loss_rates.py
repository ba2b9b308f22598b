"""How often LRN015 cries wolf over losses of healthy ranks, and how often it finds ranks that parted; rates printed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from forensics.rules.learning.ranks import ranks_disagree
from forensics.store.run import Run, run_of

Floats = NDArray[Any]
SERIES = int(os.environ.get("LEARNING_SERIES", "240")) // 4


def ranks_of(losses: Floats) -> Run:
    """A run of one source for each rank; `losses` has a row a step and a column a rank."""
    frames = [
        pl.DataFrame({"value": losses[:, rank]}).with_columns(
            source=pl.lit(f"rank{rank}.log"),
            rank=pl.lit(rank),
            seq=pl.int_range(pl.len()),
            step=pl.int_range(pl.len()) + 1,
            name=pl.lit("loss"),
            raw_name=pl.lit("loss"),
        )
        for rank in range(losses.shape[1])
    ]
    return run_of("made", {"metrics": pl.concat(frames)})


def made(kind: str, rng: np.random.Generator) -> Floats:
    steps, ranks = int(rng.choice([30, 100, 400])), int(rng.choice([2, 4, 8, 16]))
    course = 2 + 5 * np.arange(1, steps + 1) ** -0.4
    one = np.repeat((course * np.exp(0.02 * rng.standard_normal(steps)))[:, None], ranks, axis=1)
    local = np.exp(rng.uniform(0.01, 0.1) * rng.standard_normal((steps, ranks)))
    odd = int(rng.integers(ranks))
    if kind == "averaged":
        return one.round(4)
    if kind == "local":
        return (one * local).round(4)
    if kind == "parted":
        onset = int(rng.uniform(0.3, 0.7) * steps)
        one[onset:, odd] *= np.exp(0.003 * np.arange(1, steps - onset + 1) ** 0.5 * 3)
        return one.round(4)
    one = np.repeat(one[:, :1], max(4, ranks), axis=1)
    one *= np.exp(0.03 * rng.standard_normal(one.shape))
    one[:, 0] *= 1.5
    return one


@pytest.mark.parametrize("kind", ["averaged", "local"])
def test_healthy_ranks_raise_an_alarm_in_less_than_one_of_a_hundred(kind: str) -> None:
    said = [f for i in range(SERIES) for f in ranks_disagree(ranks_of(made(kind, np.random.default_rng([3, i]))))]
    print(f"\n{kind}: {len(said) / SERIES:.2%} of {SERIES}")  # noqa: T201 - the rates are the result
    assert len(said) < max(2, 0.01 * SERIES)


@pytest.mark.parametrize("kind", ["parted", "one apart"])
def test_ranks_that_parted_are_found(kind: str) -> None:
    hits = sum(bool(list(ranks_disagree(ranks_of(made(kind, np.random.default_rng([4, i])))))) for i in range(SERIES))
    print(f"\n{kind}: found {hits / SERIES:.2%} of {SERIES}")  # noqa: T201 - the rates are the result
    assert hits >= 0.95 * SERIES
