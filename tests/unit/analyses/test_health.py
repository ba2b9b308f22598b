"""How sure health is: what a run left no trace of cannot be excluded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Confidence, Outcome, Verdict

DONE = "Training complete"


def verdict(place: Path, lines: Iterable[str]) -> Verdict:
    (place / "train.log").write_text("\n".join([*lines, DONE]) + "\n", encoding="utf-8")
    return triage(place).verdict


def records(beside: str, count: int = 60) -> list[str]:
    return [f"step {n} | loss: {3 - n / 100:.4f}" + beside.format(s=0.4 + 0.004 * (n % 7)) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("beside", "is_paced"),
    [(" | step_time: {s:.4f}", True), ("", False)],
    ids=["a time of each step", "no time at all"],
)
def test_health_without_a_time_of_a_step_is_of_low_confidence_and_says_why(
    beside: str, is_paced: bool, tmp_path: Path
) -> None:
    found = verdict(tmp_path, records(beside))
    assert (found.outcome, found.confidence) == (Outcome.HEALTHY, Confidence.MEDIUM if is_paced else Confidence.LOW)
    assert ("no time of a step" in found.headline) is not is_paced


@pytest.mark.parametrize(("beside", "is_paced"), [(" | step_time: {s:.4f}", True), ("", False)], ids=["timed", "not"])
def test_a_plan_that_was_reached_without_a_time_is_health_of_low_confidence_too(
    beside: str, is_paced: bool, tmp_path: Path
) -> None:
    lines = [line.replace(" |", "/60 |", 1) for line in records(beside)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = triage(tmp_path).verdict
    assert (found.outcome, found.confidence) == (Outcome.HEALTHY, Confidence.MEDIUM if is_paced else Confidence.LOW)
    assert "end of its plan" in found.headline
    assert ("no time of a step" in found.headline) is not is_paced


def test_times_printed_in_units_of_a_third_of_a_step_show_no_pace(tmp_path: Path) -> None:
    lines = [f"step {n} | loss: {3 - n / 100:.4f} | step_time: {(0.03, 0.04)[n % 3 == 0]}" for n in range(1, 61)]
    assert "no time of a step" in verdict(tmp_path, lines).headline


def test_a_pace_and_an_end_without_a_loss_prove_no_health(tmp_path: Path) -> None:
    lines = [f"step {n} | q: {2 + n % 7 / 9:.3f} | step_time: {0.4 + 0.004 * (n % 7):.4f}" for n in range(1, 61)]
    found = verdict(tmp_path, lines)
    assert found.outcome is Outcome.CANNOT_SAY
    assert "no loss and no reward was recognised" in found.headline


@pytest.mark.parametrize("count", [1, 2])
def test_lines_too_few_to_be_learned_show_nothing(count: int, tmp_path: Path) -> None:
    assert verdict(tmp_path, records(" | val_loss: 2.9", count)).outcome is Outcome.CANNOT_SAY


def losses(count: int) -> str:
    """A table of so many falling losses."""
    return "\n".join(["step,loss", *(f"{n},{3 - n / 100:.4f}" for n in range(1, count + 1))]) + "\n"


@pytest.mark.parametrize(("count", "outcome"), [(2, Outcome.CANNOT_SAY), (3, Outcome.HEALTHY)])
def test_two_losses_are_no_course_and_an_end_alone_proves_no_health(
    count: int, outcome: Outcome, tmp_path: Path
) -> None:
    (tmp_path / "metrics.csv").write_text(losses(count), encoding="utf-8")
    found = verdict(tmp_path, [])
    assert found.outcome is outcome
    assert ("too few to show a trend" in found.headline) is (outcome is Outcome.CANNOT_SAY)
    assert DONE in found.headline


def test_two_losses_beside_a_steady_pace_and_an_end_are_health_of_low_confidence(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(losses(2), encoding="utf-8")
    found = verdict(tmp_path, [f"step {n} | step_time: {0.5 + n % 3 / 1000:.4f}" for n in range(1, 61)])
    assert (found.outcome, found.confidence) == (Outcome.HEALTHY, Confidence.LOW)
    assert "too few to show a trend" in found.headline


def test_of_a_long_last_line_its_end_is_quoted_which_says_what_came_to_an_end(tmp_path: Path) -> None:
    head = f'{{"timestamp": "2026-03-01T12:00:00Z", "logger": "{"a" * 60}", "message": '
    (tmp_path / "train.log").write_text("\n".join([*records(""), f'{head}"{DONE}"}}']) + "\n", encoding="utf-8")
    headline = triage(tmp_path).verdict.headline
    assert DONE in headline
    assert "timestamp" not in headline


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([1.2, 1.1, 169.0], Outcome.CANNOT_SAY),
        ([1.2, 1.1, 2.6], Outcome.CANNOT_SAY),
        ([1.2, 1.1, 1.9], Outcome.HEALTHY),
        ([1.2, 1.21, 1.23, 1.26, 1.3], Outcome.CANNOT_SAY),  # never as good as at first
        ([1.2, 1.21, 1.19, 1.26, 1.3], Outcome.HEALTHY),
        ([1.2, 1.22, 1.21, 1.265], Outcome.HEALTHY),  # too few evaluations
    ],
)
def test_a_held_out_loss_that_ends_above_its_first_is_no_health(
    values: list[float], outcome: Outcome, tmp_path: Path
) -> None:
    (tmp_path / "metrics.csv").write_text(losses(60), encoding="utf-8")
    table = "\n".join(["step,val_loss", *(f"{10 * n},{value}" for n, value in enumerate(values, 1))])
    (tmp_path / "held_out.csv").write_text(table + "\n", encoding="utf-8")
    found = verdict(tmp_path, [])
    assert found.outcome is outcome
    assert ("and began at 1.2" in found.headline) is (outcome is Outcome.CANNOT_SAY)


@pytest.mark.parametrize(
    ("name", "values", "outcome"),
    [
        ("knn_acc", [0.4, 0.35, 0.3, 0.29, 0.29], Outcome.CANNOT_SAY),
        ("knn_acc", [0.4, 0.35, 0.31, 0.301, 0.301], Outcome.HEALTHY),
        ("knn_acc", [12.3, 9.0, 8.0, 7.0, 7.0], Outcome.CANNOT_SAY),
        ("eval_acc", [12.1, 9.0, 8.0, 7.0, 7.0], Outcome.HEALTHY),  # a loss under this name, as MLPerf logs it
        ("knn_acc", [0.4, 0.35, 0.3, 0.29], Outcome.HEALTHY),  # too few evaluations
        ("knn_acc", [0.4, 0.35, 0.31, 0.31, 0.2], Outcome.HEALTHY),  # one bad evaluation
        ("val_precision", [1.0, 0.6, 0.5, 0.5, 0.6], Outcome.HEALTHY),  # of nearly nothing that was found at first
    ],
)
def test_a_share_of_right_answers_that_ends_below_its_first_is_no_health(
    name: str, values: list[float], outcome: Outcome, tmp_path: Path
) -> None:
    (tmp_path / "metrics.csv").write_text(losses(60), encoding="utf-8")
    table = "\n".join([f"step,{name}", *(f"{10 * n},{value}" for n, value in enumerate(values, 1))])
    (tmp_path / "held_out.csv").write_text(table + "\n", encoding="utf-8")
    found = verdict(tmp_path, [])
    assert found.outcome is outcome
    assert (f"{name} ended at " in found.headline) is (outcome is Outcome.CANNOT_SAY)


@pytest.mark.parametrize(
    ("last", "outcome"), [(-1.6, Outcome.HEALTHY), (-1.4, Outcome.CANNOT_SAY), (-3.0, Outcome.HEALTHY)]
)
def test_an_objective_below_zero_that_gives_a_quarter_back_is_no_health(
    last: float, outcome: Outcome, tmp_path: Path
) -> None:
    table = ["step,loss", *(f"{n},{-2.0 - 0.01 * (n % 3) if n < 20 else last + 0.01 * (n % 3)}" for n in range(60))]
    (tmp_path / "metrics.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    (tmp_path / "out.log").write_text("training complete\n", encoding="utf-8")
    found = verdict(tmp_path, [])
    assert found.outcome is outcome
    assert ("loss rose from " in found.headline) is (outcome is Outcome.CANNOT_SAY)


@pytest.mark.parametrize(
    ("beside", "last", "outcome"),
    [
        ("G_loss", 21.0, Outcome.CANNOT_SAY),
        ("G_loss", 19.0, Outcome.HEALTHY),
        ("style_loss", 40.0, Outcome.CANNOT_SAY),
        ("kl_loss", 40.0, Outcome.HEALTHY),  # from nearly 0 while a model learns to use its latent code
        ("val_acc_loss_scale", 40.0, Outcome.HEALTHY),
    ],
)
def test_a_part_of_a_loss_that_rose_tenfold_is_no_health(
    beside: str, last: float, outcome: Outcome, tmp_path: Path
) -> None:
    parts = [2.0] * 20 + [2.5] * 20 + [last] * 20
    lines = [f"step {n} | D_loss: 0.69{n % 7} | {beside}: {part}" for n, part in enumerate(parts, 1)]
    found = verdict(tmp_path, lines)
    assert found.outcome is outcome
    assert (f"{beside} rose from 2 to {last:.0f}" in found.headline) is (outcome is Outcome.CANNOT_SAY)


def test_where_rewards_are_logged_the_level_of_a_loss_says_nothing(tmp_path: Path) -> None:
    parts = [2.0] * 20 + [9.0] * 20 + [50.0] * 20
    lines = [f"episode {n} | reward: {n * 3.1:.1f} | value_loss: {part}" for n, part in enumerate(parts, 1)]
    assert verdict(tmp_path, lines).outcome is not Outcome.CANNOT_SAY
