"""The lab's plans: the same seed gives the same jobs, and every fault is one that a job can show."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import faults  # noqa: E402 - the lab is no package
import plan  # noqa: E402

HOOKS = (HERE / "job" / "hooks.py").read_text() + (HERE / "job" / "train.py").read_text()


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    assert plan.jobs(7, 40) == plan.jobs(7, 40)
    assert plan.jobs(7, 40) != plan.jobs(8, 40)
    assert plan.jobs(7, 10) == plan.jobs(7, 40)[:10]


def test_at_least_one_job_in_five_has_no_fault() -> None:
    controls = {one.name for one in faults.CONTROLS}
    assert sum(job.fault in controls for job in plan.jobs(3, 1000)) >= 200


def test_every_fault_and_every_trainer_comes_up() -> None:
    made = plan.jobs(5, 3000)
    assert {job.fault for job in made} == set(faults.BY_NAME)
    assert {job.trainer for job in made} == set(plan.TRAINERS)


def test_every_fault_but_the_plain_run_is_injected_somewhere() -> None:
    assert [name for name in faults.BY_NAME if f'"{name}"' not in HOOKS] == ["fine"]


def test_the_name_of_a_job_says_nothing_of_its_fault() -> None:
    for job in plan.jobs(9, 200):
        assert not any(part in job.name for part in job.fault.split("-"))


def test_a_fault_begins_within_the_run_and_on_a_rank_that_there_is() -> None:
    for job in plan.jobs(11, 500):
        assert 1 <= job.at < job.steps
        assert 0 <= job.rank < job.ranks
