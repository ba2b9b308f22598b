"""Folds that a loop trains one by one: none replaces another, so a fold that is lost stays lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import open_run, triage
from forensics.case.folds import has_folds
from forensics.model import Outcome

PARTS, EPOCHS = range(1, 6), range(1, 13)


def log(folder: Path, header: str, footer: str = "", lost: int = 0) -> Path:
    """Write a log of parts whose epochs begin anew; the loss of part `lost` is NaN from epoch 7 on."""
    lines: list[str] = []
    for part in PARTS:
        values = {e: 0.7 - e / 30 + part / 1000 for e in EPOCHS}
        values |= {e: float("nan") for e in EPOCHS if part == lost and e >= 7}
        epochs = [f"Epoch {e:02d}/12  train_loss={v:.4f}  val_acc={0.9 - v / 9:.4f}" for e, v in values.items()]
        lines += [line for line in (header.format(part), *epochs, footer.format(part)) if line]
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("header", "footer"),
    [
        ("===== FOLD {} =====", ""),
        ("--- Fold {}/5 ---", ""),
        ("", "fold {0} best auc 0.9{0}"),
        ("=== fold: {}", ""),
        (">> leaving out subject {}", ""),
        ("# outer fold {}", ""),
    ],
)
def test_a_fold_that_turned_nan_is_a_failure_although_the_next_one_is_finite(
    tmp_path: Path, header: str, footer: str
) -> None:
    verdict = triage(log(tmp_path, header, footer, lost=3)).verdict
    assert (verdict.outcome, verdict.onset.step, verdict.onset.step_lo) == (Outcome.FAILED, 7, 6)


@pytest.mark.parametrize("header", ["===== RETRY {} =====", "===== FOLDER {} =====", "member 1 of attempt {}"])
def test_a_run_that_began_anew_has_got_over_its_nan(tmp_path: Path, header: str) -> None:
    assert triage(log(tmp_path, header, lost=3)).verdict.outcome is not Outcome.FAILED


@pytest.mark.parametrize(("header", "is_told"), [("== FOLD {} ==", True), ("== FOLD 1 of {} ==", False)])
def test_the_numbers_of_folds_go_on_by_one(tmp_path: Path, header: str, is_told: bool) -> None:
    assert has_folds(open_run(log(tmp_path, header)).run) is is_told


@pytest.mark.parametrize(("rise", "is_told"), [(0.2, True), (0.0, False)])
def test_a_fold_that_diverged_is_a_failure_although_the_evaluation_of_the_others_is_good(
    tmp_path: Path, rise: float, is_told: bool
) -> None:
    lines: list[str] = []
    for part in PARTS:
        lines.append(f"===== FOLD {part} =====")
        for e in range(1, 31):
            loss = 1.4 / e + 0.1 + e % 3 / 500 + (rise * e if part == 3 and e > 13 else 0)
            lines.append(f"Epoch {e:02d}/30  train_loss={loss:.4f}  val_loss={loss + 0.05:.4f}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert (triage(tmp_path).verdict.outcome is Outcome.FAILED) is is_told


@pytest.mark.parametrize(("learns_from", "is_told"), [(99, True), (6, False)])
def test_a_fold_that_stays_where_the_others_began_has_not_learned(
    tmp_path: Path, learns_from: int, is_told: bool
) -> None:
    lines: list[str] = []
    for part in PARTS:
        lines.append(f"----- Fold {part}/5 -----")
        for e in range(1, 31):
            late = e if part != 3 else max(0, e - learns_from)
            loss = 0.693 * 0.93**late + e % 3 / 3000
            lines.append(f"epoch {e:02d} train loss {loss:.4f} val loss {loss + 0.01:.4f}")
        lines.append(f"fold {part} is over")
    (tmp_path / "train.log").write_text("\n".join([*lines, "Training complete"]) + "\n")
    told = [finding.title for finding in triage(tmp_path).findings if finding.rule.startswith("LRN005")]
    assert [title.partition(" stays")[0] for title in told] == ["train_loss of fold 3 of 5"] * is_told


@pytest.mark.parametrize(("word", "is_told"), [("epoch", True), ("step", False)])
def test_a_loss_at_chance_for_fifty_epochs_has_not_learned_and_after_fifty_steps_may_yet(
    tmp_path: Path, word: str, is_told: bool
) -> None:
    lines = [f"{word} {n:02d}  loss {2.3026 + n % 3 / 2000:.4f}  {12 + n % 2}s" for n in range(1, 51)]
    (tmp_path / "train.log").write_text("\n".join([*lines, "Training complete"]) + "\n")
    assert (triage(tmp_path).verdict.outcome is Outcome.SUSPECT) is is_told


@pytest.mark.parametrize(
    ("numbers", "is_told"),
    [([1, 2, 3, 1, 2, 3], True), ([0, 1, 0, 1], True), ([1, 2, 3, 1, 3, 2], False), ([1] * 4, False)],
)
def test_a_loop_around_the_folds_begins_their_numbers_anew(tmp_path: Path, numbers: list[int], is_told: bool) -> None:
    lines: list[str] = []
    for number in numbers:
        lines.append(f"== FOLD {number} ==")
        lines += [f"Epoch {e:02d}/12  train_loss={0.7 - e / 30 + number / 1000:.4f}" for e in EPOCHS]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert has_folds(open_run(tmp_path).run) is is_told
