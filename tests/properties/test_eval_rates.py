"""How often equal evaluations are told apart, and how often a worse one is found: by document and without.

The rates are printed: pytest -s. `EVAL_PAIRS` sets the pairs of each kind (default 400).
"""
# ruff: noqa: T201 - the rates are printed

from __future__ import annotations

import os
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.compare.evals._tests import by_counts, by_errors, holm, mcnemar, paired
from forensics.formats.evals.checkpoint_names import step_in
from forensics.formats.rows.json_records import objects_under, offsets_of

PAIRS = int(os.environ.get("EVAL_PAIRS", "400"))
SHARE, ALPHA = 0.6, 0.05


def rejected(n: int, flips: float, drop: float) -> dict[str, float]:
    """Share of pairs that differ at 5 %: by z of errors, by counts, by document."""
    rng = np.random.default_rng(n + int(1000 * flips) + int(1e6 * drop))
    hits = {"z": 0, "counts": 0, "McNemar": 0}
    for _ in range(PAIRS):
        base = rng.random(n) < SHARE
        cand = np.where(rng.random(n) < flips, rng.random(n) < SHARE, base) & ~(rng.random(n) < drop / SHARE)
        p, q = float(base.mean()), float(cand.mean())
        z = by_errors(q - p, sqrt(p * (1 - p) / (n - 1)), sqrt(q * (1 - q) / (n - 1)))
        counts = by_counts((p, n), (q, n))
        assert z is not None
        assert counts is not None
        hits["z"] += z.p < ALPHA
        hits["counts"] += counts.p < ALPHA
        hits["McNemar"] += paired(base.astype(float), cand.astype(float)).p < ALPHA
    return {name: count / PAIRS for name, count in hits.items()}


@pytest.mark.parametrize("flips", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("n", [250, 1000])
def test_equal_evaluations_are_told_apart_in_no_more_than_one_of_twenty_cases(n: int, flips: float) -> None:
    rates = rejected(n, flips, 0.0)
    print(f"{n} documents, {flips:.0%} of the answers drawn anew, no difference: {rates}")
    slack = 3 * sqrt(ALPHA * (1 - ALPHA) / PAIRS)
    assert all(rate <= ALPHA + slack for rate in rates.values())


@pytest.mark.parametrize(("n", "flips", "drop", "least"), [(1000, 0.05, 0.02, 0.7), (1000, 0.2, 0.05, 0.9)])
def test_a_fall_is_found_by_document_where_errors_alone_are_blind(
    n: int, flips: float, drop: float, least: float
) -> None:
    rates = rejected(n, flips, drop)
    print(f"{n} documents, {flips:.0%} of the answers drawn anew, fall of {drop:.0%}: {rates}")
    assert rates["McNemar"] >= least
    assert rates["McNemar"] > rates["z"]


def test_over_many_tasks_a_false_alarm_is_no_more_frequent_than_over_one() -> None:
    rng = np.random.default_rng(11)
    alarms = sum(min(holm(rng.random(40).tolist())) < ALPHA for _ in range(1000)) / 1000
    print(f"40 equal tasks: at least one called different in {alarms:.1%}")
    assert alarms < ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / 1000)


@pytest.mark.parametrize("shape", ["normal", "skewed"])
def test_a_bootstrap_of_scores_that_are_no_shares_holds_its_level(shape: str) -> None:
    rng = np.random.default_rng(3)
    pairs, n = 200, 40
    hits = 0
    for _ in range(pairs):
        base = rng.random(n)
        gaps = rng.normal(0, 0.2, n) if shape == "normal" else rng.exponential(0.2, n) - 0.2
        hits += paired(base, base + gaps).p < ALPHA
    print(f"bootstrap of {n} {shape} differences: called different in {hits / pairs:.1%}")
    assert hits / pairs < ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / pairs)


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_p_is_a_probability_and_does_not_depend_on_the_side(fell: int, rose: int) -> None:
    assert 0 <= mcnemar(fell, rose) <= 1
    assert mcnemar(rose, fell) == mcnemar(fell, rose)


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_any_bytes_have_places_inside_them(data: bytes) -> None:
    data = b'{"results": ' + data
    for under in ((), ("results",)):
        spans = objects_under(data, *under)
        where = offsets_of(data, {(*under, task) for task in spans})
        assert all(0 <= begin <= end <= len(data) for begin, end in spans.values())
        assert where.at.keys() <= {(*under, task) for task in spans}
        assert all(0 <= at < len(data) for at in where.at.values())


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("out/checkpoint-500", 500),
        ("model_step130000.json", 130_000),
        ("iter_0001000/mp_rank_00", 1000),
        ("global_step12", 12),
        ("step3000", 3000),
        ("lm-1.4b", None),
        ("footstep9x", None),
        ("results_2031-02-03T04-05-06.json", None),
    ],
)
def test_the_step_in_a_name(name: str, step: int | None) -> None:
    assert step_in([name]) == step
