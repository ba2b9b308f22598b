"""A number of one rank that is not finite where the loss of all is lost names that rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import triage


def culprits(folder: Path, odd: dict[int, tuple[int, str]], ranks: int = 4) -> tuple[int, ...]:
    """`odd`: what a rank logs as the largest value of its batch at a step."""
    for rank in range(ranks):
        lines = ["step,loss,batch_absmax"]
        for step in range(60):
            at, said = odd.get(rank, (-1, ""))
            loss = 3 - step / 99 if step < 41 else float("nan")
            lines.append(f"{step},{loss:.4f},{said if step == at else f'{3 + step % 3 / 9:.3f}'}")
        path = folder / f"rank{rank}" / "metrics.csv"
        path.parent.mkdir()
        path.write_text("\n".join(lines) + "\n")
    return triage(folder).verdict.culprits


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({2: (41, "inf")}, (2,)),
        ({2: (40, "nan")}, (2,)),
        ({2: (30, "inf")}, ()),
        ({2: (41, "")}, ()),
        ({2: (41, "inf"), 3: (41, "inf")}, ()),
    ],
)
def test_the_rank_whose_batch_alone_was_lost_is_named(
    odd: dict[int, tuple[int, str]], named: tuple[int, ...], tmp_path: Path
) -> None:
    assert culprits(tmp_path, odd) == named


def test_of_two_ranks_neither_is_odd(tmp_path: Path) -> None:
    assert culprits(tmp_path, {1: (41, "inf")}, ranks=2) == ()
