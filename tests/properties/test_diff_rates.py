"""How often two equal runs are told apart, and how often a slower one is found.

`DIFF_PAIRS` sets the number of pairs of each kind (default 25; the figures in the docs are of more), `DIFF_SEED` moves
the seeds. The rates are printed: pytest -s.
"""
# ruff: noqa: T201 - the rates are printed

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from forensics.compare.decide import Answer, Policy
from forensics.compare.diff import diff
from forensics.compare.model import Options, Section
from forensics.store.run import Run, run_of
from forensics.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from pace_made import Made, times

PAIRS = int(os.environ.get("DIFF_PAIRS", "25"))
SEED = int(os.environ.get("DIFF_SEED", "0"))
SHORT = Made(n=200)
EQUAL = {
    "independent": (SHORT, SHORT),
    "50 steps": (Made(n=50), Made(n=50)),
    "correlated .5": (replace(SHORT, rho=0.5), replace(SHORT, rho=0.5)),
    "correlated .8": (replace(SHORT, rho=0.8), replace(SHORT, rho=0.8)),
    "heavy tails": (replace(SHORT, heavy=True), replace(SHORT, heavy=True)),
    "evaluation, warm-up, collection": (replace(SHORT, eval_every=50, warm=5, gc=0.01),) * 2,
    "two modes": (replace(SHORT, two=(0.3, 1.5)),) * 2,
    "mixed lengths": (replace(SHORT, lengths=0.2),) * 2,
    "logged every step and every 10": (Made(n=400), Made(n=400, every=10)),
    "evaluation, logged every step and every 10": (
        Made(n=1000, eval_every=100),
        Made(n=1000, eval_every=100, every=10),
    ),
    "mixed lengths, logged every step and every 10": (Made(n=400, lengths=0.2), Made(n=400, lengths=0.2, every=10)),
    "warm-up in one only": (replace(SHORT, warm=10), SHORT),
}


def run(name: str, rng: np.random.Generator, made: Made, slower: float = 1.0, *, work: np.ndarray | None = None) -> Run:
    steps, seconds = times(rng, made)
    seconds = seconds * slower * (1.0 if work is None else work)
    rows = {"source": "run.log", "seq": steps, "step": steps, "name": "step_time_s", "raw_name": "step_time"}
    return run_of(name, {"metrics": pl.DataFrame(rows | {"value": seconds})})


@lru_cache(maxsize=PAIRS)
def runs(seed: int, pair: tuple[Made, Made], slower: float, sd: float) -> tuple[Run, Run]:
    """The same two runs as often as they are asked for: they keep what was derived from them."""
    rng = np.random.default_rng(SEED + seed)
    own = [math.exp(sd * rng.standard_normal()) for _ in range(2)]
    return run("base", rng, pair[0], own[0]), run("cand", rng, pair[1], slower * own[1])


def compared(a: Run, b: Run, noise: float) -> Section:
    found = diff([a], b, Options(policy=Policy(run_noise=noise), noise_given=noise != 0.005), ["throughput"])
    return found.sections[0]


def rates(
    label: str, pair: tuple[Made, Made], slower: float, seed: int, *, noise: float = 0.005, sd: float = 0.0
) -> Counter[Answer | None]:
    pairs = (runs(seed + 7919 * i, pair, slower, sd) for i in range(PAIRS))
    told = Counter(compared(*both, noise).answer for both in pairs)
    print(f"{label}: " + ", ".join(f"{answer}: {count / PAIRS:.1%}" for answer, count in sorted(told.items(), key=str)))
    return told


@pytest.mark.parametrize("kind", EQUAL)
def test_equal_runs_are_not_told_apart(kind: str) -> None:
    told = rates(kind, EQUAL[kind], 1.0, 100_000_000)
    assert told[Answer.REGRESSION] <= max(1, 0.01 * PAIRS)
    exact = rates(f"{kind}, without run-to-run noise", EQUAL[kind], 1.0, 100_000_000, noise=0.0)
    assert exact[Answer.REGRESSION] <= max(2, 0.015 * PAIRS)


@pytest.mark.parametrize(("sd", "most"), [(0.005, 0.02), (0.01, 0.12)])
def test_runs_that_differ_by_themselves_are_the_limit_of_one_pair(sd: float, most: float) -> None:
    told = rates(f"runs that differ by {sd:.1%}", (SHORT, SHORT), 1.0, 200_000_000, sd=sd)
    assert told[Answer.REGRESSION] <= max(2, most * PAIRS)
    known = rates(f"runs that differ by {sd:.1%}, told so", (SHORT, SHORT), 1.0, 200_000_000, sd=sd, noise=sd + 1e-9)
    assert known[Answer.REGRESSION] <= max(1, 0.01 * PAIRS)


def test_long_memory_noise_is_mostly_inconclusive() -> None:
    told = rates("1/f noise of 5 %", (replace(SHORT, pink=True),) * 2, 1.0, 300_000_000)
    assert told[Answer.REGRESSION] <= max(2, 0.03 * PAIRS)


@pytest.mark.parametrize("kind", ["independent", "correlated .8", "evaluation, warm-up, collection", "two modes"])
def test_twice_the_time_is_always_found(kind: str) -> None:
    assert rates(f"2x, {kind}", EQUAL[kind], 2.0, 400_000_000)[Answer.REGRESSION] >= 0.99 * PAIRS


def test_ten_percent_is_found_in_a_hundred_steps_at_five_percent_noise() -> None:
    made = Made(n=100)
    assert rates("10 %, 100 steps", (made, made), 1.1, 500_000_000)[Answer.REGRESSION] >= 0.95 * PAIRS


def test_two_percent_is_found_where_the_noise_allows_and_inconclusive_where_not() -> None:
    exact = rates("2 %, 1000 steps, no run-to-run noise", (Made(), Made()), 1.02, 600_000_000, noise=0.0)
    assert exact[Answer.REGRESSION] >= 0.98 * PAIRS
    short = rates("2 %, 200 steps, no run-to-run noise", (SHORT, SHORT), 1.02, 600_000_000, noise=0.0)
    assert short[Answer.REGRESSION] >= 0.75 * PAIRS
    wandering = rates("2 %, correlated .8, 200 steps", EQUAL["correlated .8"], 1.02, 600_000_000)
    assert wandering[Answer.INCONCLUSIVE] >= 0.85 * PAIRS


def test_the_same_batches_in_the_same_order_are_compared_in_pairs() -> None:
    told: Counter[Answer | None] = Counter()
    for i in range(PAIRS):
        rng = np.random.default_rng(SEED + 700_000_000 + i)
        work = np.exp(0.2 * rng.standard_normal(200))
        a, b = run("base", rng, SHORT, work=work), run("cand", rng, SHORT, 1.04, work=work)
        told[diff([a], b, names=["throughput"]).sections[0].answer] += 1
    print(f"4 % under shared lengths of 20 %: {told[Answer.REGRESSION] / PAIRS:.1%}")
    assert told[Answer.REGRESSION] >= 0.9 * PAIRS


def test_several_baselines_measure_what_runs_differ_by() -> None:
    false = true = 0
    for i in range(PAIRS):
        rng = np.random.default_rng(SEED + 800_000_000 + i)
        own = [math.exp(0.01 * rng.standard_normal()) for _ in range(4)]
        bases = [run(f"base {k}", rng, SHORT, own[k]) for k in range(3)]
        false += diff(bases, run("same", rng, SHORT, own[3])).answer is Answer.REGRESSION
        true += diff(bases, run("slow", rng, SHORT, 1.1 * own[3])).answer is Answer.REGRESSION
    print(f"three baselines that differ by 1 %: false {false / PAIRS:.1%}, 10 % found {true / PAIRS:.1%}")
    assert false <= max(1, 0.01 * PAIRS)
    assert true >= 0.9 * PAIRS
