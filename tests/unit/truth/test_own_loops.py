"""Whole logs of loops that people wrote for themselves: what they say of the run, and near misses."""

from __future__ import annotations

from math import exp
from pathlib import Path
from random import Random

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import said, shape

HEALTHY, LEARNING = (Outcome.HEALTHY, None), (Outcome.SUSPECT, Shape.LEARNING)
LEAK = (Outcome.SUSPECT, Shape.OOM)


def returns(line: str, *, falls: bool) -> list[str]:
    """A return that rises, and falls back to nothing where it `falls`."""
    noise = Random(3)
    course = (20 * (1 - exp(-at / 20)) - (22 if falls and at > 120 else 0) + noise.gauss(0, 1) for at in range(200))
    return [*(line.format(n=10 * at, r=r, x=1 / (1 + at)) for at, r in enumerate(course, 1)), "total episodes 2000"]


@pytest.mark.parametrize(
    "line", ["ep {n} R={r:.2f} H={x:.3f}", "T={n} | R_eval={r:.1f} | Q1={x:.2f}", "ep {n} avg100 {r:.2f} eps {x:.3f}"]
)
def test_a_short_name_of_a_return_is_one_beside_what_only_a_policy_has(line: str, tmp_path: Path) -> None:
    assert shape(said(tmp_path / "a", returns(line, falls=True))) == LEARNING
    assert shape(said(tmp_path / "b", returns(line, falls=False))) == HEALTHY


def test_a_short_name_alone_is_no_return(tmp_path: Path) -> None:
    assert shape(said(tmp_path, returns("step {n} R={r:.2f} load={x:.3f}", falls=True)))[1] is None


def beside(name: str, last: float) -> list[str]:
    """A loss that vanishes beside a number that goes from 2 to `last`."""
    rows = (
        f"Epoch {e}/30 - loss: {0.9 * exp(-e / 4):.4f}, {name}: {2 + (last - 2) * e / 30:.4f}" for e in range(1, 31)
    )
    return [*rows, "training finished"]


@pytest.mark.parametrize("name", ["val", "валидация", "dev"])
def test_a_split_alone_beside_a_loss_is_its_loss_where_it_begins_near_it(name: str, tmp_path: Path) -> None:
    assert shape(said(tmp_path, beside(name, 3.8)))[1] == Shape.LEARNING


@pytest.mark.parametrize(("name", "last"), [("val", 60.0), ("score", 3.8), ("val", 0.9)])
def test_a_percentage_and_a_share_are_no_loss(name: str, last: float, tmp_path: Path) -> None:
    assert shape(said(tmp_path, beside(name, last))) == HEALTHY


@pytest.mark.parametrize(("left", "outcome"), [(0.55, Outcome.SUSPECT), (0.99, Outcome.HEALTHY)])
def test_the_score_of_an_earlier_task_that_is_lost_is_forgotten(left: float, outcome: Outcome, tmp_path: Path) -> None:
    lines: list[str] = []
    for task in (1, 2, 3):
        for e in range(1, 9):
            scores = [
                1.0 if own == task else 1 - (1 - left) * min(1, (task - own - 1 + e / 8) / 2)
                for own in range(1, task + 1)
            ]
            told = " ".join(f"acc@task{own} {score:.3f}" for own, score in enumerate(scores, 1))
            lines.append(f"task {task} epoch {e}: train loss {1 / (8 * task + e) ** 2:.5f} | {told}")
    verdict = said(tmp_path, [*lines, "average accuracy over tasks: 0.7"])
    assert verdict.outcome == outcome
    assert verdict.cause == ("forgetting" if outcome == Outcome.SUSPECT else "")


@pytest.mark.parametrize(
    "form",
    [
        "Época {e}/30  perda {v:.4f}  perda_val {w:.4f}  acurácia_val {a:.1f}%",
        "第 {e} 轮 损失 {v:.4f} 验证损失 {w:.4f} 验证准确率 {a:.1f}%",
    ],
)
def test_a_model_that_guesses_is_told_in_any_language(form: str, tmp_path: Path) -> None:
    noise = Random(5)
    rows = (
        form.format(e=e, v=2.305 + noise.gauss(0, 0.003), w=2.306 + noise.gauss(0, 0.01), a=10 + noise.gauss(0, 1))
        for e in range(1, 31)
    )
    assert shape(said(tmp_path / "a", [*rows, "done"])) == LEARNING
    well = (
        form.format(e=e, v=2.3 * exp(-e / 9), w=2.3 * exp(-e / 10) + 0.1, a=min(95, 10 + 5 * e)) for e in range(1, 31)
    )
    assert shape(said(tmp_path / "b", [*well, "done"])) == HEALTHY


@pytest.mark.parametrize(("grown", "cause"), [(0.31, "host_leak"), (0.0, "silent_death_sigkill")])
def test_a_memory_before_its_limit_leaks_where_it_grows(grown: float, cause: str, tmp_path: Path) -> None:
    rows = (
        f"chunk {at} | logloss {exp(-at / 200):.5f} | RSS {8.1 + at * grown:.1f} GB / 64 GB" for at in range(1, 181)
    )
    assert said(tmp_path, [*rows, "./run.sh: line 7: 20113 Killed   python -u fit.py"]).cause == cause


@pytest.mark.parametrize(("name", "size", "outcome"), [("ctx", 512, HEALTHY), ("stage", 1, LEAK), ("seed", 0, LEAK)])
def test_a_memory_that_grows_with_a_logged_size_leaks_nothing(
    name: str, size: int, outcome: tuple[Outcome, Shape], tmp_path: Path
) -> None:
    noise = Random(7)
    rows = (
        f"step {s} {name} {size * (1 + s // 1000) + 42 * (not size)}"
        f" loss {3 * exp(-s / 1500) + noise.gauss(1.5, 0.05):.4f} mem {5.5 + s // 1000 * 1.5:.2f}GB"
        for s in range(0, 4000, 10)
    )
    assert shape(said(tmp_path, [*rows, "training finished"])) == outcome


@pytest.mark.parametrize(("back", "outcome"), [(False, Outcome.SUSPECT), (True, Outcome.HEALTHY)])
def test_an_error_rate_that_was_low_and_stays_high_is_told_and_one_that_comes_back_is_not(
    back: bool, outcome: Outcome, tmp_path: Path
) -> None:
    noise = Random(9)
    lines: list[str] = []
    for at in range(1, 41):
        high = 25 <= at < 30 if back else at >= 25
        wer = (97 if high else 60 * exp(-at / 6) + 9) + noise.gauss(0, 0.3)
        lines += [f"| {at} | train | loss {2 * exp(-at / 9) + 0.3:.4f}", f"| {at} | valid | WER {wer:.2f}"]
    assert said(tmp_path, [*lines, "finished"]).outcome == outcome


@pytest.mark.parametrize("unit", ["img/s", "utt/s", "rays/s"])
def test_a_rate_that_falls_is_a_pace_and_no_loss(unit: str, tmp_path: Path) -> None:
    noise = Random(11)
    rows = (
        f"[{at:5d}] L1 {0.3 * exp(-at / 600) + 0.05:.4f} | {(812 if at < 1200 else 310) + noise.gauss(0, 9):.0f} {unit}"
        for at in range(0, 2000, 10)
    )
    assert shape(said(tmp_path, [*rows, "finished"]))[1] == Shape.SLOWDOWN
