"""The rank that the words of an exception set apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import api
from forensics.case.errors.odd_rank import odd_rank


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("grad_norm across the workers:\nrank   0 = 0.81\nrank   1 = 0.81\nrank   2 = 3.90\nrank   3 = 0.81", 2),
        ("losses: rank 0: 2.30, rank 1: nan, rank 2: 2.31", 1),
        ("rank0=1.0 rank1=1.0 rank2=1.0101 rank3=1.0", 2),
        ("rank 6 has checksum 91aa where ranks 0-5,7 have 55c0", 6),
        ("ranks 1, 2, 3 wait at step 9, rank 0 at step 8", 0),
    ],
)
def test_one_rank_is_set_apart(text: str, rank: int) -> None:
    assert odd_rank(text) == rank


@pytest.mark.parametrize(
    "text",
    [
        "rank 0 = 0.81 rank 1 = 3.90",
        "rank0=1.0 rank1=1.0 rank2=1.0099 rank3=1.0",
        "rank 0: 1.0, rank 1: 2.0, rank 2: 3.0, rank 3: 4.0",
        "rank 0: nan, rank 1: nan, rank 2: 2.31",
        "rank 6 is slow, rank 5 and ranks 0-4 are not",
        "rank 2 and ranks 0-5 disagree",
        "rank 2 fails",
        "expected a tensor of rank 4, got ranks 2, 3",
        "",
    ],
)
def test_nothing_sets_one_rank_apart(text: str) -> None:
    assert odd_rank(text) is None


def test_the_rank_that_an_error_sets_apart_is_the_culprit_and_not_who_raised_it(tmp_path: Path) -> None:
    steps = [f"step {step} loss 2.5" for step in range(30)]
    words = "weights differ: rank 6 has checksum 91aa where ranks 0-5,7 have 55c0"
    (tmp_path / "train.log").write_text("\n".join([*steps, f"[rank0]: AssertionError: {words}", ""]))
    verdict = api.triage(tmp_path).verdict
    assert verdict.culprits == (6,)
    assert verdict.headline.startswith("Rank 0 raised AssertionError")
