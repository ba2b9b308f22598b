"""A NaN in the first record after a resume: the checkpoint that was loaded is no place to go on from."""

from __future__ import annotations

import math
from pathlib import Path

from forensics.model import Verdict
from tests.unit.truth._runs import said

RESUMED = "resumed from checkpoints/step_40 at step 40"


def records(first: int, last: int, bad_from: float = math.inf, every: int = 1) -> list[str]:
    """Records of some steps, and the lines that say what was saved."""
    lines: list[str] = []
    for step in range(first, last + 1, every):
        loss, norm = ("nan", "nan") if step >= bad_from else (f"{3 - step / 50:.4f}", f"{0.8 + step % 3 / 50:.3f}")
        lines.append(f"step {step}/90 | loss: {loss} | grad_norm: {norm}")
        if step % 20 == 0:
            lines.append(f"saved checkpoint checkpoints/step_{step}")
    return lines


def verdict(place: Path, after: list[str], before: list[str] | None = None) -> Verdict:
    return said(place, [*(before or records(1, 40)), RESUMED, *after])


def saved(found: Verdict) -> int | None:
    return found.checkpoint.step if found.checkpoint is not None else None


def test_a_nan_in_the_first_record_after_a_resume_is_one_of_what_was_loaded(tmp_path: Path) -> None:
    found = verdict(tmp_path, records(41, 90, bad_from=41))
    assert (found.cause, found.onset.step, saved(found)) == ("from_resume", 41, 20)
    assert "restart from an earlier one" in found.actions[0].text


def test_a_nan_that_follows_finite_records_of_the_attempt_is_none_of_what_was_loaded(tmp_path: Path) -> None:
    found = verdict(tmp_path, records(41, 90, bad_from=42))
    assert (found.cause, found.onset.step, saved(found)) == ("data_or_numerics", 42, 40)


def test_a_nan_that_the_first_attempt_met_at_the_same_step_is_none_of_what_was_loaded(tmp_path: Path) -> None:
    found = verdict(tmp_path, records(41, 60, bad_from=41), before=records(1, 50, bad_from=41))
    assert found.cause != "from_resume"
    assert saved(found) == 40


def test_a_resume_that_goes_back_some_steps_and_is_lost_at_once_is_one_of_what_was_loaded(tmp_path: Path) -> None:
    found = verdict(tmp_path, records(41, 90, bad_from=41), before=records(1, 50))
    assert (found.cause, found.onset.step, saved(found)) == ("from_resume", 41, 20)


def test_a_first_record_far_behind_the_resume_speaks_of_the_steps_as_well(tmp_path: Path) -> None:
    near = verdict(tmp_path / "near", records(50, 90, bad_from=41, every=10), before=records(1, 40))
    far = verdict(tmp_path / "far", records(51, 91, bad_from=41, every=10), before=records(1, 40))
    assert (near.cause, far.cause) == ("from_resume", "data_or_numerics")


def test_the_checkpoint_that_was_loaded_is_not_given_even_where_there_is_no_other(tmp_path: Path) -> None:
    alone = [line for line in records(1, 40) if "step_20" not in line]
    found = verdict(tmp_path, records(41, 90, bad_from=41), before=alone)
    assert (found.cause, saved(found)) == ("from_resume", None)
