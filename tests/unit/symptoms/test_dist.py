"""Ranks that should be alike and are not: whose, from which step, and what to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import falling, noisy, spread, steps

if TYPE_CHECKING:
    from pathlib import Path


def line(step: int) -> str:
    return f"step={step} loss={3 - step / 200:.4f} gnorm=0.5000\n"


def test_a_check_of_the_program_that_losses_differ_names_the_rank_and_the_step(tmp_path: Path) -> None:
    differ = "⚠  losses differ across ranks: [2.301, 2.305, 2.911, 2.302]\n"
    log = "".join(line(n) + differ * (n >= 120) for n in range(1, 201))
    page = told(written(tmp_path, {"train.log": log}))
    assert "The program reports that the losses of its ranks differ, first after step 120" in page
    assert "rank 2 is farthest from the others (2.911)" in page
    assert "Compare a checksum of the weights over the ranks" in page
    assert "Repeat it on one device" in page


def test_losses_that_all_differ_name_no_rank(tmp_path: Path) -> None:
    log = line(1) + "⚠  losses differ across ranks: [2.1, 2.3, 2.5, 2.7]\n"
    assert report(written(tmp_path, {"train.log": log})).verdict.culprits == ()


def statistics(drift: float, ranks: int = 4) -> str:
    said: list[str] = []
    for n in range(1, 121):
        said.append(line(n))
        for rank in range(ranks):
            noise = 0.002 * ((7 * n + 3 * rank) % 5 - 2)
            mean = 0.1 + noise + drift * max(0, n - 60) * (rank == 2)
            said.append(f"[rank{rank}] hidden: mean={mean:.4f} std=1.0000\n")
    return "".join(said)


def test_the_rank_whose_tensor_drifts_away_is_named(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": statistics(0.002)}))
    assert "The mean of hidden on rank 2 leaves the mean of the other ranks" in page
    assert "culprits rank 2" in page


@pytest.mark.parametrize(("drift", "ranks"), [(0.0, 4), (0.002, 3)])
def test_ranks_that_stay_together_and_too_few_ranks_are_not_told_apart(
    tmp_path: Path, drift: float, ranks: int
) -> None:
    assert report(written(tmp_path, {"train.log": statistics(drift, ranks)})).findings == ()


def configured(*values: str) -> dict[str, str]:
    logs = {f"rank{rank}/train.log": "".join(map(line, range(1, 31))) for rank in range(len(values))}
    return logs | {f"rank{rank}/config.yaml": f"lr: 3.0e-4\n{value}\n" for rank, value in enumerate(values)}


@pytest.mark.parametrize("key", ["seed", "max_steps", "global_batch"])
def test_the_rank_that_is_configured_otherwise_is_named(tmp_path: Path, key: str) -> None:
    page = told(written(tmp_path, configured(f"{key}: 300", f"{key}: 300", f"{key}: 298", f"{key}: 300")))
    assert f"Rank 2 has {key} = 298 where rank 0 has 300" in page
    assert "Give every rank the same configuration" in page


@pytest.mark.parametrize(
    "values", [("seed: 42",) * 3, ("seed: 42", "seed: 43", "seed: 44"), ("port: 1", "port: 1", "port: 2")]
)
def test_equal_files_seeds_that_all_differ_and_what_each_rank_has_of_its_own_are_fine(
    tmp_path: Path, values: tuple[str, ...]
) -> None:
    assert "HST003" not in {f.rule for f in report(written(tmp_path, configured(*values))).findings}


@pytest.mark.parametrize(("apart", "cause"), [(0.04, "ranks_parted"), (0.0, "")])
def test_a_gradient_norm_that_all_ranks_shared_and_no_longer_do_names_the_rank(
    tmp_path: Path, apart: float, cause: str
) -> None:
    norm = spread(0.5, seed=3)
    files = {
        f"rank_{rank}.log": steps(
            120,
            loss=noisy(falling(2.0, 1.0), 0.03, rank),
            gnorm=lambda n, rank=rank: norm(n) * (1 + apart * max(0, n - 60) * (rank == 2)),
        )
        for rank in range(4)
    }
    verdict = report(written(tmp_path, files)).verdict
    assert verdict.cause == cause
    assert verdict.culprits == ((2,) if cause else ())


@pytest.mark.parametrize(
    ("apart", "shard", "cause"), [(0.04, 0.0, "ranks_parted"), (0.0, 0.0, ""), (0.0, 0.1, "")],
    ids=["parted", "equal", "norms of shards"],
)  # fmt: skip
def test_a_norm_of_the_weights_that_all_ranks_shared_and_no_longer_do_names_the_rank(
    tmp_path: Path, apart: float, shard: float, cause: str
) -> None:
    files = {
        f"proc{rank}.csv": "it,loss,weight_norm\n"
        + "".join(
            f"{n},{noisy(falling(2.0, 1.0), 0.03, rank)(n):.5f},"
            f"{(4 + n / 100) * (1 + shard * rank + apart * (n >= 60 and rank == 2)):.6f}\n"
            for n in range(1, 121)
        )
        for rank in range(4)
    }
    verdict = report(written(tmp_path, files)).verdict
    assert verdict.cause == cause
    assert (verdict.culprits, verdict.onset.step) == (((2,), 60) if cause else ((), None))


@pytest.mark.parametrize(("own", "cause"), [(3e-5, "ranks_parted"), (3e-4, "")])
def test_a_learning_rate_that_one_rank_has_alone_names_the_rank(tmp_path: Path, own: float, cause: str) -> None:
    files = {
        f"rank_{rank}.log": steps(
            60,
            loss=noisy(falling(2.0, 1.0), 0.03, rank),
            lr=lambda n, rank=rank: (own if rank == 2 else 3e-4) * (1 - n / 100),
        )
        for rank in range(4)
    }
    verdict = report(written(tmp_path, files)).verdict
    assert verdict.cause == cause
    assert verdict.culprits == ((2,) if cause else ())


@pytest.mark.parametrize(("drift", "cause"), [(0.012, "ranks_parted"), (0.0, "")])
def test_a_rank_whose_loss_drifts_away_slowly_is_named(tmp_path: Path, drift: float, cause: str) -> None:
    files = {
        f"rank{rank}.csv": "step,loss\n"
        + "".join(
            f"{n},{2.5 - 0.005 * n + 0.002 * ((n * 7 + rank * 3) % 5 - 2) + drift * max(0, n - 40) * (rank == 3):.5f}\n"
            for n in range(1, 101)
        )
        for rank in range(4)
    }
    verdict = report(written(tmp_path, files)).verdict
    assert verdict.cause == cause
    assert verdict.culprits == ((3,) if cause else ())
    assert not cause or 41 <= (verdict.onset.step or 0) <= 45
