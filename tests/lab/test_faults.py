"""What is right to say of a fault follows what is still shown of it."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from forensics.values import replace

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import faults  # noqa: E402 - the lab is no package
import lab  # noqa: E402 - same
import plan  # noqa: E402 - same
from faults import crash, cut, learn, nan, resume, slow  # noqa: E402 - same

JOB = plan.jobs(1, 1)[0]
LINES = [f"step {step} loss {'nan' if step >= 60 else 2.0}\n" for step in range(1, 101)]


def records(losses: list[float], by: int = 0, process: int = 0, dt: float = 0.1) -> list[dict[str, Any]]:
    """What a job notes of its records."""
    return [
        {"shown": step, "loss": repr(loss), "norm": "1.0", "dt": dt, "by": by, "process": process, "log_bytes": 0}
        for step, loss in enumerate(losses, 1)
    ]


def seeds(count: int = 60) -> list[random.Random]:
    """As many dice, always the same."""
    return [random.Random(f"cut-{number}") for number in range(count)]


def test_a_nan_whose_records_are_all_cut_off_cannot_be_told_and_one_record_tells_it(tmp_path: Path) -> None:
    sizes = [len("".join(LINES[:step])) for step in range(1, 101)]
    facts = [
        one | {"log_bytes": size}
        for one, size in zip(
            records([float("nan") if step >= 60 else 2.0 for step in range(1, 101)]), sizes, strict=True
        )
    ]
    told = set()
    for rng in seeds():
        (tmp_path / "train.log").write_text("".join(LINES))
        changed = cut.cut_nan(JOB, tmp_path, facts, rng)
        whole = (tmp_path / "train.log").read_text().rpartition("\n")[0]
        assert ("nan" in whole) == (changed == {})
        assert not changed or (changed["outcome"], changed["shape"]) == ("cannot_say|suspect", "none")
        told.add(changed == {})
    assert told == {True, False}


def test_a_traceback_that_is_cut_is_a_crash_without_a_cause_and_one_that_is_gone_is_nothing(tmp_path: Path) -> None:
    text = (
        "".join(LINES[:50])
        + 'Traceback (most recent call last)\n  File "train.py", line 9, in main\n'
        + "KeyError: 'rope_scaling'\n"
    )
    told = set()
    for rng in seeds():
        (tmp_path / "train.log").write_text(text)
        changed = cut.cut_traceback(JOB, tmp_path, [], rng)
        left = (tmp_path / "train.log").read_text()
        assert "KeyError" not in left
        assert changed["causes"] == ()
        assert ("Traceback (most recent call last)" in left) == (changed["outcome"] == "failed")
        told.add(changed["outcome"])
    assert told == {"failed", "cannot_say|suspect"}


def test_every_log_of_a_cut_run_loses_its_end(tmp_path: Path) -> None:
    for name in ("slurm-1.out", "slurm-1.err"):
        (tmp_path / name).write_text("x" * 1000)
    assert cut.cut(JOB, tmp_path, [], random.Random("a")) == {}
    sizes = {path.stat().st_size for path in tmp_path.iterdir()}
    assert len(sizes) == 1
    assert 250 <= sizes.pop() <= 900


def test_what_a_full_disk_left_is_an_empty_file_and_no_way_to_the_device(tmp_path: Path) -> None:
    (tmp_path / "step_40").mkdir()
    link = tmp_path / "step_40" / "model.pt"
    link.symlink_to("/dev/full")
    assert crash.unlinked(JOB, tmp_path, [], random.Random("a")) == {}
    assert not link.is_symlink()
    assert link.read_bytes() == b""


@pytest.mark.parametrize(("saved", "left"), [([20, 40, 60], 40), ([40], None), ([40, 40, 80], 40)])
def test_a_checkpoint_that_is_lost_leaves_the_one_before_it(saved: list[int], left: int | None) -> None:
    assert crash.one_before(JOB, Path(), [{"saved": step} for step in saved], random.Random("a")) == {
        "checkpoint": left
    }


def test_a_loss_that_is_wrong_in_another_way_or_not_at_all_does_not_show() -> None:
    job = replace(JOB, rank=0, ranks=2, at=20, trainer="logging")
    flat, risen, bad = [2.0] * 40, [2.0] * 20 + [9.0] * 20, [2.0] * 20 + [float("nan")] * 20
    assert learn.left(job, records(risen), []) == ""
    assert "did not leave" in learn.left(job, records(flat), [])
    assert "NaN" in learn.finite(job, records(bad), [])
    assert learn.parted(job, records(risen) + records(flat, by=1), []) == ""
    assert learn.parted(job, records(risen) + records(risen, by=1), []) == "the ranks agree"
    assert nan.not_finite(job, records(bad), []) == ""
    assert "finite" in nan.not_finite(job, records(risen), [])


def test_what_a_resume_lost_shows_in_a_jump_of_the_loss() -> None:
    old = records([2.0 + 0.01 * (at % 2) for at in range(20)])
    assert resume.jumped(JOB, old + records([3.0] * 10, process=1), []) == ""
    assert "jump" in resume.jumped(JOB, old + records([2.01] * 10, process=1), [])
    assert "few" in resume.jumped(JOB, old + records([3.0] * 2, process=1), [])


def test_a_slowdown_shows_where_times_are_logged_on_both_sides_of_its_onset() -> None:
    job = replace(JOB, at=20, trainer="print", stores=())
    fast, slow_part = (
        records([2.0] * 20),
        [one | {"shown": one["shown"] + 20, "dt": 0.3} for one in records([2.0] * 20)],
    )
    assert slow.slower(job, fast + slow_part, []) == ""
    assert "slower" in slow.slower(job, records([2.0] * 40), [])
    assert "fewer" in slow.slower(job, fast + slow_part[:3], [])
    assert "no time" in slow.slower(replace(job, trainer="dict"), fast + slow_part, [])


def test_the_onset_of_a_ramp_is_open_until_its_steps_are_slower() -> None:
    job = replace(JOB, at=40, steps=100, log_every=2, numbers={"times": 3.5})
    assert slow.within_ramp(job, Path(), [], random.Random("a")) == {
        "within": 6
    }  # a quarter slower of 2.5 times: 6 of 60
    assert slow.within_ramp(replace(job, log_every=10), Path(), [], random.Random("a")) == {"within": 10}


def test_a_job_that_had_to_be_ended_is_dropped_whatever_its_fault() -> None:
    row = faults.BY_NAME["stop-term"]
    assert "longer" in lab._not_shown(JOB, row, records([2.0]), [lab._LATE])
    assert lab._not_shown(JOB, row, records([2.0]), [1]) == ""


def test_a_fault_before_the_first_record_needs_none_and_any_other_does() -> None:
    assert lab._not_shown(JOB, faults.BY_NAME["hang-start"], [], [1]) == ""
    assert lab._not_shown(JOB, faults.BY_NAME["hang-end"], [], [1]) == "nothing was logged"


@pytest.mark.parametrize("row", faults.ROWS, ids=lambda row: row.name)
def test_a_row_says_what_its_outcome_needs(row: faults.Fault) -> None:
    failed = row.outcome.split("|")[0] == "failed"
    assert failed == (row.shape.split("|")[0] != "none")
    assert bool(row.causes and row.says) == failed or row.name == "cut-crash"
    assert not row.culprit or min(row.ranks) > 1 or row.name == "mem-cgroup"
    assert row.ends or row.shown is not faults.row.always
