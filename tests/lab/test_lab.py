"""The lab's plans: the same seed gives the same jobs, and every fault is one that a job can show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import accuracy  # noqa: E402 - the lab is no package
import faults  # noqa: E402 - same
import lab  # noqa: E402 - same
import launch  # noqa: E402 - same
import plan  # noqa: E402 - same
import score  # noqa: E402 - same
import trainers  # noqa: E402 - same

INJECTED = {path.stem: path.read_text() for path in (HERE / "job" / "inject").glob("*.py")}
SCRIPTS = {path.name: path.read_text() for path in (HERE / "job").glob("*.py")}
_OURS = ("common", "library", "hf_hooks")
STORES = {path.stem for path in (HERE / "job" / "stores").glob("[!_]*.py")}


def test_a_seed_gives_the_same_jobs_and_another_seed_others() -> None:
    assert plan.jobs(7, 40) == plan.jobs(7, 40)
    assert plan.jobs(7, 40) != plan.jobs(8, 40)
    assert plan.jobs(7, 10) == plan.jobs(7, 40)[:10]


def test_at_least_one_job_in_four_has_no_fault() -> None:
    controls = {one.name for one in faults.CONTROLS}
    assert sum(job.fault in controls for job in plan.jobs(3, 2000)) >= 500


def test_every_fault_every_trainer_and_every_store_comes_up() -> None:
    made = plan.jobs(5, 6000)
    assert {job.fault for job in made} == set(faults.BY_NAME)
    assert {job.trainer for job in made} == set(trainers.BY_NAME)
    assert {store for job in made for store in job.stores} == STORES


@pytest.mark.parametrize("row", faults.ROWS, ids=lambda row: row.name)
def test_a_fault_is_injected_by_the_module_of_its_kind(row: faults.Fault) -> None:
    kind = row.name.split("-")[0]
    assert row.name == kind or row.name in INJECTED[kind] or row.after is not None


@pytest.mark.parametrize("row", trainers.ROWS, ids=lambda row: row.name)
def test_a_trainer_calls_every_hook_that_it_offers(row: trainers.Trainer) -> None:
    script = SCRIPTS[row.script]
    text = script + "".join(SCRIPTS[f"{name}.py"] for name in _OURS if f"import {name}\n" in script)
    assert not [hook for hook in row.hooks if f"hooks.{hook}(" not in text]


def test_a_job_takes_only_a_fault_that_its_trainer_can_show() -> None:
    rows = {row.name: row for row in faults.ROWS}
    jobs = [(rows[job.fault], trainers.BY_NAME[job.trainer], job) for job in plan.jobs(13, 2000) if job.fault in rows]
    assert {row.name for row, *_ in jobs} == rows.keys()
    for row, trainer, job in jobs:
        assert row.needs <= trainer.hooks, job
        assert set(job.stores) <= trainer.stores, job
        assert job.ranks <= trainer.ranks, job
        assert row.starts <= trainer.starts, job
        assert job.steps <= trainer.steps, job


def test_the_name_of_a_job_says_nothing_of_its_fault() -> None:
    for job in plan.jobs(9, 200):
        assert not any(part in job.name for part in job.fault.split("-"))


def test_a_fault_begins_within_the_run_and_on_a_rank_that_there_is() -> None:
    for job in plan.jobs(11, 500):
        assert 1 <= job.at < job.steps
        assert 0 <= job.rank < job.ranks


def test_some_jobs_have_eight_ranks_and_none_of_a_heavy_library_has() -> None:
    large = [job for job in plan.jobs(15, 2000) if job.ranks == 8]
    assert 20 <= len(large) <= 120
    assert {trainers.BY_NAME[job.trainer].script for job in large} == {"train.py"}


def test_ranks_are_started_by_torchrun_or_as_tasks_with_logs_of_their_own_and_always_in_the_same_way() -> None:
    made = [job for job in plan.jobs(15, 2000) if job.ranks > 1]
    commands = [" ".join(launch.command(job, "python", HERE / "job" / "train.py")) for job in made]
    assert commands == [" ".join(launch.command(job, "python", HERE / "job" / "train.py")) for job in made]
    assert {
        re.sub(r"=\d{2,}", "=", re.sub(r"(rank|nproc-per-node|ntasks)s?=\d", r"\1", text)) for text in commands
    } == {
        re.sub(r"\s+", " ", f"python {started} {HERE / 'job' / 'train.py'}")
        for started in (
            *(
                f"-m torch.distributed.run --nproc-per-node --master-port= {' '.join(more)}"
                for more in launch._TORCHRUN
            ),
            *(f"{HERE / 'job' / 'srun.py'} --ntasks --port= --job-id= {pair}" for pair in ("", "--pair")),
        )
    }


def test_a_job_alone_is_started_by_python_itself() -> None:
    job = next(job for job in plan.jobs(15, 50) if job.ranks == 1)
    assert launch.command(job, "python", Path("train.py")) == ["python", "train.py"]


@pytest.mark.parametrize("pair", [True, False])
def test_tasks_of_a_step_end_when_one_of_them_ends_badly(tmp_path: Path, pair: bool) -> None:
    script = tmp_path / "rank.py"
    script.write_text(
        "import os, sys, time\nprint('world', os.environ['WORLD_SIZE'], flush=True)\n"
        "time.sleep(60 if os.environ['RANK'] == '0' else 0.5)\nsys.exit('no data')"
    )
    given = ["--ntasks=2", "--port=1", "--job-id=4007", *(["--pair"] if pair else [])]
    line = [sys.executable, str(HERE / "job" / "srun.py"), *given, str(script)]
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False)
    said = [text for text in ended.stderr.splitlines() if "Terminat" in text or "Exited" in text]
    assert ended.returncode == 128 + 15
    assert said == [
        "srun: error: node07: task 1: Exited with exit code 1",
        "srun: Terminating StepId=4007.0",
        "srun: error: node07: task 0: Terminated",
    ]
    logs = {path.name: path.read_text() for path in tmp_path.glob("slurm*")}
    both = {"slurm-4007_0.out": "world 2\n", "slurm-4007_1.out": "world 2\n" + ("" if pair else "no data\n")}
    assert logs == both | ({"slurm-4007_0.err": "", "slurm-4007_1.err": "no data\n"} if pair else {})


@pytest.mark.parametrize(("trainer", "counted"), [("print", 42), ("sb3", 42 * 32), ("keras-epochs", 9)])
def test_a_truth_counts_as_the_files_of_its_trainer_do(trainer: str, counted: int) -> None:
    assert lab._counted(trainers.BY_NAME[trainer], 42) == counted
    assert lab._counted(trainers.BY_NAME[trainer], None) is None


@pytest.mark.parametrize(("step", "right"), [(50, True), (55, True), (60, True), (61, False), (11, True), (9, False)])
def test_a_job_that_counts_epochs_may_be_answered_in_its_steps(step: int, right: bool) -> None:
    truth = TRUTH | {"onset": 11, "within": 1, "checkpoint": None, "epoch_steps": 5}
    assert score.judged(truth, SAID | {"onset": step})["onset"] is right


@pytest.mark.parametrize(("step", "right"), [(40, True), (45, False)])
def test_a_checkpoint_of_an_epoch_may_be_named_by_its_last_step(step: int, right: bool) -> None:
    truth = TRUTH | {"checkpoint": 8, "epoch_steps": 5}
    assert score.judged(truth, SAID | {"checkpoint": {"step": step, "path": None}})["checkpoint"] is right


def test_every_library_is_pinned_without_a_build_or_an_index() -> None:
    pins = (HERE / "requirements.lock").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    pinned = {pin.partition("==")[0].lower().replace("_", "-") for pin in pins}
    asked = {re.split(r"[=<>]", line)[0] for line in (HERE / "requirements.txt").read_text().splitlines()}
    assert asked <= pinned


TRUTH = {
    "outcome": "failed", "shape": "nan", "causes": ["bad_sample"], "onset": 40, "within": 2, "culprits": [1],
    "checkpoint": 20, "says": ["batch"],
}  # fmt: skip
SAID = {
    "outcome": "failed", "shape": "nan", "onset": 42, "culprits": [1], "cause": "bad_sample", "confidence": "high",
    "checkpoint": {"step": 20, "path": None}, "has_checkpoint": True, "action": "Inspect the batch of step 40",
}  # fmt: skip


def test_an_answer_that_agrees_with_the_truth_is_right_in_every_field() -> None:
    assert score.judged(TRUTH, SAID) == dict.fromkeys(score.FIELDS, True)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("outcome", {"outcome": "suspect"}),
        ("shape", {"shape": "crash"}),
        ("onset", {"onset": 43}),
        ("onset", {"onset": None}),
        ("culprits", {"culprits": [0, 1]}),
        ("cause", {"cause": "other"}),
        ("checkpoint", {"checkpoint": {"step": 40}}),
        ("action", {"action": "lower the learning rate"}),
    ],
)
def test_one_wrong_part_of_an_answer_is_one_wrong_field(field: str, wrong: dict[str, object]) -> None:
    assert score.judged(TRUTH, SAID | wrong) == dict.fromkeys(score.FIELDS, True) | {field: False}


def test_no_answer_is_wrong_in_every_field_that_the_truth_decides() -> None:
    assert set(score.judged(TRUTH, None).values()) == {False}


def test_a_soft_shape_may_be_failed_or_suspect_and_a_hard_one_may_not() -> None:
    slow = TRUTH | {"outcome": "failed|suspect", "shape": "slowdown"}
    said = SAID | {"outcome": "suspect", "shape": "slowdown"}
    assert score.judged(slow, said)["outcome"] is True
    assert score.judged(TRUTH, SAID | {"outcome": "suspect"})["outcome"] is False


def test_a_share_of_few_jobs_has_a_wide_interval() -> None:
    low, high = score.interval(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)  # Wilson's interval of 8 of 10
    assert score.interval(0, 0) == (0.0, 1.0)


def test_the_page_of_accuracy_names_the_faults_that_are_mostly_answered_wrongly() -> None:
    def row(fault: str, *, right: bool) -> dict[str, object]:
        truth = dict.fromkeys(score.TRUTH) | TRUTH | {"fault": fault, "trainer": "print", "ranks": 1}
        said = SAID if right else SAID | {"outcome": "healthy", "shape": "none"}
        return {"name": "job", "truth": truth, "said": said, "right": score.judged(truth, said)}

    rows = [*[row("nan-lr", right=True)] * 5, *[row("hang-skip", right=False)] * 3, row("crash-all", right=False)]
    page = accuracy.page([{"seed": 7, "planned": 11, "rows": rows}])
    assert "Fewer than half of these are answered with the right outcome and shape: `hang-skip` (0 of 3)." in page
    assert "Seeds 7 (9 jobs); 2 of 11 jobs were left out." in page
    assert "| `nan-lr` | 5 | 5 | 100 % | 57-100 % |" in page
    assert "| onset: the first bad step, to one log interval | 9 | 9 | 100 % | 70-100 % |" in page


def _records(waits: list[float]) -> list[dict[str, float]]:
    """One record a second, and for how much of each second its process waited for a CPU."""
    waited = [sum(waits[:number]) for number in range(len(waits))]
    return [{"shown": n, "by": 0, "process": 0, "at_s": float(n), "waited_s": one} for n, one in enumerate(waited)]


@pytest.mark.parametrize(
    ("late", "times"),
    [(0.0, 1.0), (0.19, 1 / 0.81), (0.5, 2.0)],
)
def test_a_third_that_waited_for_a_cpu_counts_as_slower_by_what_it_waited(late: float, times: float) -> None:
    assert lab.made_slower(_records([0.0] * 20 + [late] * 11)) == pytest.approx(times, rel=0.05)


def test_a_job_that_waits_all_along_was_not_made_slower() -> None:
    assert lab.made_slower(_records([0.4] * 30)) == pytest.approx(1.0)


def test_each_rank_and_each_process_is_compared_with_itself() -> None:
    steady = [one | {"by": 1} for one in _records([0.5] * 30)]
    again = [one | {"process": 1} for one in _records([0.0] * 30)]
    assert lab.made_slower([*steady, *again]) == pytest.approx(1.0)


def test_a_job_without_records_was_not_made_slower() -> None:
    assert lab.made_slower([]) == 1.0


def test_a_program_below_this_folder_is_found_from_a_job_s_own_folder_and_one_of_the_path_by_its_name() -> None:
    assert lab.program("env/bin/python") == str(Path.cwd() / "env/bin/python")
    assert lab.program("python3") == "python3"
