"""What the lab decides of what jobs left: whether a wrong evaluation shows, and which processes are a job's ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import spy
from faults.evals import falls, no_fall

RIGHT = {"scored": 40, "wrong": False, "answers": 450, "score": 0.70, "expected": 0.70}
WRONG = RIGHT | {"scored": 60, "wrong": True, "score": 0.32}


def said(*made: dict[str, Any]) -> str:
    return falls(None, list(made), [])


def test_a_wrong_evaluation_shows_when_its_score_is_far_below_a_right_one_beside_it() -> None:
    assert said(RIGHT, WRONG) == ""


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ((RIGHT,), "one of each"),
        ((WRONG,), "one of each"),
        ((RIGHT | {"score": 0.4}, WRONG | {"score": 0.1}), "did not learn"),
        ((RIGHT, WRONG | {"expected": 0.4, "score": 0.1}), "did not learn"),
        ((RIGHT, WRONG | {"score": 0.61}), "by no more than 0.09"),  # less than a tenth
        ((RIGHT | {"answers": 72}, WRONG | {"answers": 72, "score": 0.55}), "by no more than 0.15"),  # within errors
    ],
)
def test_a_wrong_evaluation_that_a_reader_could_not_see_is_dropped(made: tuple[dict[str, Any], ...], why: str) -> None:
    assert why in said(*made)


def test_only_the_first_wrong_evaluation_decides_as_it_is_the_onset() -> None:
    assert "by no more than" in said(RIGHT, WRONG | {"score": 0.69}, WRONG | {"scored": 80})


def test_a_control_may_not_fall_by_more_than_chance() -> None:
    later = RIGHT | {"scored": 60}
    assert no_fall(None, [RIGHT, later | {"score": 0.65}], []) == ""
    assert "fell by 0.15" in no_fall(None, [RIGHT, later | {"score": 0.55}], [])
    assert no_fall(None, [], []) == "nothing was evaluated"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="ranks are found in /proc")
def test_ranks_are_the_processes_that_were_given_a_rank_and_a_launcher_is_none(tmp_path: Path) -> None:
    notes = tmp_path / "job.notes"
    waits = [sys.executable, "-c", "print(flush=True); input()"]

    def started(**given: str) -> subprocess.Popen[bytes]:
        environment = {key: value for key, value in os.environ.items() if key != "RANK"} | given
        process = subprocess.Popen(waits, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()  # until then it may still be the process that starts it
        return process

    running = [started(LAB_NOTES=str(notes))]
    try:
        assert spy.ranks(notes) == {0: running[0].pid}
        running += [started(LAB_NOTES=str(notes), RANK=rank) for rank in ("0", "1")]
        assert spy.ranks(notes) == {0: running[1].pid, 1: running[2].pid}
        assert spy.ranks(tmp_path / "other.notes") == {}
    finally:
        for one in running:
            one.kill()
            one.communicate()
