"""Learning that is wrong at a glance, however few records show it, and runs that only look so."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Outcome, Shape, Verdict

FALLING = [2.3 * 0.985**at + 0.02 * (at % 3) for at in range(300)]


def said(place: Path, lines: Iterable[str]) -> Verdict:
    (place / "train.log").write_text("\n".join([*lines, "training finished"]) + "\n", encoding="utf-8")
    return triage(place).verdict


def is_wrong(verdict: Verdict) -> bool:
    return verdict.outcome in {Outcome.FAILED, Outcome.SUSPECT} and verdict.shape is Shape.LEARNING


def with_rate(rate: Callable[[int], float], losses: Iterable[float], peak: str = "") -> list[str]:
    return [
        *([peak] if peak else []),
        *(f"step {at} | loss: {loss:.4f} | lr: {rate(at):.3e}" for at, loss in enumerate(losses, 1)),
    ]


def scored(name: str, values: Iterable[float], losses: Iterable[float]) -> list[str]:
    return [
        f"epoch {at} | loss: {loss:.4f} | {name}: {value:.4f}"
        for at, (value, loss) in enumerate(zip(values, losses, strict=False), 1)
    ]


@pytest.mark.parametrize(("losses", "wrong"), [((2.2, 8e27, 5e30), True), ((2.2, 2.0, 1.9), False)])
def test_three_records_suffice_for_a_loss_of_ten_to_the_thirty(
    losses: tuple[float, ...], *, wrong: bool, tmp_path: Path
) -> None:
    assert is_wrong(said(tmp_path, with_rate(lambda _: 1e-3, losses))) is wrong


@pytest.mark.parametrize(("norm", "wrong"), [(0.0, True), (0.8, False)])
def test_a_loss_of_zero_trains_nothing_where_its_gradient_is_zero(norm: float, *, wrong: bool, tmp_path: Path) -> None:
    lines = [f"step {at} | loss: 0.0 | grad_norm: {norm and norm + at / 100}" for at in range(1, 9)]
    assert is_wrong(said(tmp_path, lines)) is wrong


@pytest.mark.parametrize(("step", "wrong"), [(0.0, True), (0.0003, False)])
def test_a_loss_that_is_the_same_to_four_digits_over_nine_epochs_does_not_move(
    step: float, *, wrong: bool, tmp_path: Path
) -> None:
    lines = [f"epoch {at} | loss: {2.3026 - step * at:.4f}" for at in range(1, 10)]
    assert is_wrong(said(tmp_path, lines)) is wrong


@pytest.mark.parametrize(("last", "wrong"), [(0.0, True), (2e-4, False)])
def test_a_learning_rate_that_is_zero_from_a_third_of_the_run_on_trains_no_more(
    last: float, *, wrong: bool, tmp_path: Path
) -> None:
    losses = [*FALLING[:100], *(FALLING[100] + 0.02 * (at % 3) for at in range(200))]
    verdict = said(tmp_path, with_rate(lambda at: 1e-3 if at <= 100 else last, losses))
    assert is_wrong(verdict) is wrong


@pytest.mark.parametrize(("warmup", "wrong"), [(100_000, True), (150, False)])
def test_a_warm_up_that_the_run_never_leaves_trains_nothing(warmup: int, *, wrong: bool, tmp_path: Path) -> None:
    rng = random.Random(5)
    losses = [4.158 + rng.gauss(0, 0.02) - (0.0 if wrong else 0.006 * at) for at in range(300)]
    assert (
        is_wrong(said(tmp_path, with_rate(lambda at: 3e-4 * min(1.0, at / warmup), losses, f"warmup_steps: {warmup}")))
        is wrong
    )


@pytest.mark.parametrize(("chance", "wrong"), [(math.log(10), True), (1.1, False)])
def test_a_rate_of_thirty_that_ends_at_chance_has_destroyed_the_model(
    chance: float, *, wrong: bool, tmp_path: Path
) -> None:
    rng = random.Random(6)
    losses = [2.4, 40.0, 12.0, 5.0, *(chance + abs(rng.gauss(0, 0.02)) for _ in range(120))]
    assert is_wrong(said(tmp_path, with_rate(lambda _: 30.0 if wrong else 3e-4, losses))) is wrong


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("mIoU", 0.003, 0.42), ("accuracy", 0.1, 0.71)],
)
@pytest.mark.parametrize("wrong", [True, False])
def test_a_score_that_never_leaves_chance_has_learned_nothing(
    name: str, low: float, high: float, *, wrong: bool, tmp_path: Path
) -> None:
    rng = random.Random(7)
    values = [low * (1 + rng.gauss(0, 0.02)) if wrong else low + (high - low) * (1 - 0.8**at) for at in range(24)]
    losses = [2.31 + rng.gauss(0, 0.01) for _ in range(24)]
    assert is_wrong(said(tmp_path, scored(name, values, losses))) is wrong


def by_rank(leap: Callable[[int], float], seed: int = 8) -> list[str]:
    """Losses of two ranks with data of their own, the first of which is `leap` times as high."""
    rng = random.Random(seed)
    return [
        f"[rank{rank}]: step {at} | loss: {1.4 * math.exp(rng.gauss(0, 0.2)) * (1.0 if rank else leap(at)):.4f}"
        for at in range(1, 161)
        for rank in (0, 1)
    ]


def test_a_rank_that_leaps_and_comes_back_half_way_has_left_the_others(tmp_path: Path) -> None:
    verdict = said(tmp_path, by_rank(lambda at: 1.0 if at < 66 else 1.8 + 14 * 0.9 ** (at - 66)))
    assert (verdict.outcome, verdict.cause, verdict.culprits, verdict.onset.step) == (
        Outcome.FAILED,
        "ranks_parted",
        (0,),
        66,
    )


def test_a_rank_that_leaps_and_comes_all_the_way_back_has_not(tmp_path: Path) -> None:
    assert said(tmp_path, by_rank(lambda at: 1.0 if at < 66 else 1.0 + 14 * 0.9 ** (at - 66))).cause != "ranks_parted"


LEAP = [12.5012, 12.48, 40.8121, 41.202]


@pytest.mark.parametrize(
    ("losses", "wrong"),
    [
        (LEAP, True),
        ([12.5012, 12.48, 36.0, 35.0], False),  # less than three times
        ([12.5012, 12.48, 40.8121, 12.3], False),  # it came back
        ([0.05, 0.04, 0.5, 0.6], False),  # a small loss has far to go up
    ],
)
def test_a_loss_that_leaps_to_three_times_at_iteration_3_and_stays_is_suspect(
    losses: list[float], *, wrong: bool, tmp_path: Path
) -> None:
    verdict = said(tmp_path, [f"iteration {at} | loss {loss:.4f}" for at, loss in enumerate(losses, 1)])
    assert is_wrong(verdict) is wrong
    assert not wrong or verdict.onset.step == 3


@pytest.mark.parametrize("first", [60, 120])
def test_the_onset_of_a_ramp_is_where_it_leaves_its_past_and_not_its_half(first: int, tmp_path: Path) -> None:
    rng = random.Random(9)
    losses = [2.0 + rng.gauss(0, 0.02) + max(0, at - first) * 0.01 for at in range(1, 301)]
    verdict = said(tmp_path, with_rate(lambda _: 1e-3, losses))
    assert is_wrong(verdict)
    assert verdict.onset.step == pytest.approx(first, abs=24)
