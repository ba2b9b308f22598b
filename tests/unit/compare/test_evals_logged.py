"""Evaluation metrics that were logged while training, and results against the spread of several baselines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from forensics.compare.decide import Answer
from forensics.compare.diff import diff
from forensics.compare.evals import _tests as tests_of
from forensics.compare.evals._logged import by_steps
from forensics.compare.evals.comparison import against_spread, compare_all
from forensics.pipeline import ingest_run
from forensics.store.run import Run

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "fixtures" / "make"))
import evals as made  # noqa: E402 - a script of the fixtures, not a package


def trained(folder: Path, fall: float, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    rows: list[dict[str, float]] = []
    for n in range(10, 1001, 10):
        rows.append({"step": n, "train/loss": 3 - n / 2000})
        if n % 50 == 0:
            rows[-1]["eval/accuracy"] = 0.5 + n / 5000 - fall + rng.normal(0, 0.004)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ingest_run(folder)


def test_a_lower_curve_of_scores_is_a_regression_with_both_lines(tmp_path: Path) -> None:
    base, cand = trained(tmp_path / "good", 0.0, 1), trained(tmp_path / "bad", 0.08, 2)
    (found,) = diff([base], cand, names=["evals"]).sections
    assert found.answer is Answer.REGRESSION
    assert found.metric == "logged while training eval/accuracy"
    assert [e.locator.line for e in found.evidence] == [100, 100]


def test_two_seeds_are_no_difference(tmp_path: Path) -> None:
    base = trained(tmp_path / "good", 0.0, 1)
    for seed in range(2, 12):
        assert not any(p.significant for p in compare_all([base], trained(tmp_path / str(seed), 0.0, seed)))


def test_few_evaluations_are_not_tested() -> None:
    assert by_steps(np.arange(5.0), np.arange(5.0), is_share=False) is None


def test_a_drifting_difference_counts_as_few_steps() -> None:
    base = np.full(40, 2.0)
    walk = np.cumsum(np.random.default_rng(3).normal(0, 0.01, 40))
    steady, drifting = (by_steps(base, base + gap, is_share=False) for gap in (np.full(40, 0.1), walk))
    assert steady is not None
    assert drifting is not None
    assert steady.p < 1e-6
    assert drifting.p > 0.01


def test_baselines_that_lie_apart_make_a_fall_less_certain() -> None:
    def z(base: float) -> tuple[float, tests_of.Tested]:
        return base, tests_of.Tested("z", 0.5 - base, 0.01, 0.001)

    alone, apart = against_spread([z(0.56), z(0.56), z(0.56)], 0.5), against_spread([z(0.62), z(0.56), z(0.50)], 0.5)
    assert alone.p < 0.01
    assert apart.p > 0.05


def test_a_fall_against_two_equal_baselines_is_found(tmp_path: Path) -> None:
    runs: list[Run] = []
    for name, shift in (("a", 0.0), ("b", 0.004), ("bad", -0.12)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"results_{made.STAMP}.json").write_text(json.dumps(made.version_04(shift=shift), indent=2))
        runs.append(ingest_run(tmp_path / name))
    pairs = {p.name: p for p in compare_all(runs[:2], runs[2])}
    assert pairs["reefs acc"].baselines == 2
    assert pairs["reefs acc"].worse
    assert pairs["reefs acc"].significant
    assert pairs["reefs acc"].delta == pytest.approx(-0.12)
