"""Launches: folders of a launcher, or logs of jobs, beside each other are attempts of one job, or its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.case.errors.exits import exits
from forensics.case.processes.attempts import attempts
from forensics.case.processes.launches import launches
from forensics.case.processes.lives import lives
from forensics.model import Outcome, Shape

STOPPED = "received preemption notice, checkpoint saved, leaving"
RESUMED = "Restored all states from the checkpoint at checkpoints/step_60.ckpt"
DONE = "training finished after 90 steps"


def joined(rank: int) -> str:
    return f"Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {rank + 1}/2"


def at(second: int, words: str) -> str:
    return f"2031-05-06 10:00:{second:02d} INFO {words}"


def place_of(root: Path, files: Mapping[str, Sequence[str]]) -> Path:
    for name, lines in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("\n".join(lines) + "\n")
    return root


def steps(first: int, last: int, second: int) -> list[str]:
    return [at(second + i // 10, f"step {n} loss: {3 - n / 100:.3f}") for i, n in enumerate(range(first, last + 1))]


def test_a_launch_of_the_same_ranks_that_resumed_is_the_later_attempt_whatever_its_folder_is_called(
    tmp_path: Path,
) -> None:
    place = place_of(
        tmp_path,
        {
            "logs/none_zz/attempt_0/0/stdout.log": [joined(0), STOPPED],
            "logs/none_aa/attempt_0/0/stdout.log": [joined(0), RESUMED, DONE],
        },
    )
    run = pipeline.ingest_run(place)
    assert launches(run) == {"logs/none_zz/attempt_0/0/stdout.log": 0, "logs/none_aa/attempt_0/0/stdout.log": 1}
    assert attempts(run).judged.number == 1
    assert pipeline.report_of(run).verdict.shape is not Shape.STOPPED


def test_the_stop_of_the_only_launch_is_a_stop(tmp_path: Path) -> None:
    run = pipeline.ingest_run(place_of(tmp_path, {"logs/none_zz/attempt_0/0/stdout.log": [joined(0), STOPPED]}))
    assert launches(run) == {}
    assert pipeline.report_of(run).verdict.shape is Shape.STOPPED


def test_folders_of_other_ranks_are_nodes_of_one_launch(tmp_path: Path) -> None:
    place = place_of(
        tmp_path,
        {
            "logs/none_aa/attempt_0/0/stdout.log": [joined(0), RESUMED, DONE],
            "logs/none_zz/attempt_0/0/stdout.log": [joined(1), STOPPED],
        },
    )
    assert launches(pipeline.ingest_run(place)) == {}


def test_launches_that_train_one_after_the_other_are_attempts_by_the_clock(tmp_path: Path) -> None:
    place = place_of(
        tmp_path,
        {
            "logs/job_b/attempt_0/0/stdout.log": [*steps(1, 60, 0), at(9, STOPPED)],
            "logs/job_a/attempt_0/0/stdout.log": [*steps(61, 90, 20), at(30, DONE)],
        },
    )
    run = pipeline.ingest_run(place)
    assert attempts(run).judged.number == 1
    assert pipeline.report_of(run).verdict.outcome is Outcome.HEALTHY


def test_a_node_that_only_complains_after_the_others_are_silent_is_no_later_launch(tmp_path: Path) -> None:
    complaint = "ValueError: no batch arrived"
    place = place_of(
        tmp_path,
        {
            "logs/job_b/attempt_0/0/stdout.log": steps(1, 60, 0),
            "logs/job_a/attempt_0/0/stdout.log": [at(40, "Traceback (most recent call last):"), at(40, complaint)],
        },
    )
    assert launches(pipeline.ingest_run(place)) == {}


def test_groups_that_a_launcher_started_anew_are_attempts(tmp_path: Path) -> None:
    place = place_of(
        tmp_path,
        {
            "logs/job_a/attempt_0/0/stdout.log": [*steps(1, 60, 0), at(9, "KeyError: 'rope'")],
            "logs/job_a/attempt_1/0/stdout.log": [*steps(61, 90, 20), at(30, DONE)],
        },
    )
    run = pipeline.ingest_run(place)
    assert [launches(run)[source] for source in sorted(launches(run))] == [0, 1]


def test_of_two_places_with_launches_the_one_that_was_launched_more_often_counts(tmp_path: Path) -> None:
    stopped, again = [joined(0), STOPPED], [joined(0), RESUMED, DONE]
    train = {f"{place}/none_zz/attempt_0/0/stdout.log": stopped for place in ("a", "b", "c")}
    run = pipeline.ingest_run(place_of(tmp_path, train | {"b/none_aa/attempt_0/0/stdout.log": again}))
    assert launches(run) == {"b/none_zz/attempt_0/0/stdout.log": 0, "b/none_aa/attempt_0/0/stdout.log": 1}


@pytest.mark.parametrize(("again", "rule"), [(3.0, "RSM002"), (2.2, None)], ids=["lost", "kept"])
def test_a_later_launch_that_numbers_no_steps_parts_the_records_of_a_file_that_holds_both(
    again: float, rule: str | None, tmp_path: Path
) -> None:
    held = [*(3.0 - n / 100 for n in range(1, 81)), *(again - n / 100 for n in range(1, 61))]
    held = [loss + 0.004 * (n * 7 % 5) for n, loss in enumerate(held)]
    state = {"log_history": [{"epoch": n / 140, "loss": loss, "step": n} for n, loss in enumerate(held, 1)]}
    lines = [str({"loss": f"{loss:.4g}", "epoch": f"{n / 140:.4g}"}) for n, loss in enumerate(held, 1)]
    place = place_of(
        tmp_path,
        {
            "logs/none_zz/attempt_0/0/stdout.log": [joined(0), *lines[:80], STOPPED],
            "logs/none_aa/attempt_0/0/stdout.log": [joined(0), RESUMED, *lines[80:], DONE],
            "out/trainer_state.json": [json.dumps(state | {"global_step": 140, "max_steps": 140})],
            "out/checkpoint-60/trainer_state.json": [json.dumps({"log_history": [], "global_step": 60})],
        },
    )
    run = pipeline.ingest_run(place)
    assert [(one.first, one.last) for one in lives(run)] == [(1, 80), (81, 140)]
    report = pipeline.report_of(run)
    assert next((f.rule for f in report.findings if f.rule.startswith("RSM")), None) == rule
    assert report.verdict.outcome is (Outcome.FAILED if rule else Outcome.HEALTHY)


LIMIT = "slurmstepd: error: *** JOB 48300 ON node042 CANCELLED AT 2031-05-06T10:00:09 DUE TO TIME LIMIT ***"
LOST = ("Traceback (most recent call last):", "FileNotFoundError: [Errno 2] No such file or directory: 'index.npy'")


def bare(first: int, last: int) -> list[str]:
    return [f"step {n} loss: {3 - n / 100:.3f}" for n in range(first, last + 1)]


def test_a_job_that_dies_before_its_first_step_is_the_attempt_after_the_one_that_was_stopped(tmp_path: Path) -> None:
    run = pipeline.ingest_run(
        place_of(
            tmp_path,
            {
                "slurm-48300.out": [*steps(1, 60, 0), LIMIT],
                "slurm-48307.out": [at(40, "loading"), at(41, LOST[0]), LOST[1]],
            },
        )
    )
    assert launches(run) == {"slurm-48300.out": 0, "slurm-48307.out": 1}
    assert pipeline.report_of(run).verdict.shape is Shape.CRASH


def test_the_two_streams_of_a_job_are_one_launch(tmp_path: Path) -> None:
    files = {"a-48300.out": bare(1, 60), "a-48300.err": [LIMIT], "a-48307.out": bare(1, 20), "a-48307.err": LOST}
    told = launches(pipeline.ingest_run(place_of(tmp_path, files)))
    assert told == {"a-48300.out": 0, "a-48300.err": 0, "a-48307.out": 1, "a-48307.err": 1}


def test_jobs_that_die_before_their_first_step_are_as_many_attempts_in_logs_of_any_ending(tmp_path: Path) -> None:
    names = ("job.48300.log", "job.48307.log", "job.48311.log")
    run = pipeline.ingest_run(place_of(tmp_path, dict.fromkeys(names, ("loading the data", *LOST))))
    assert launches(run) == {name: number for number, name in enumerate(names)}
    assert attempts(run).stuck == len(names)


@pytest.mark.parametrize("last", [True, False])
def test_a_word_that_only_counts_at_the_end_of_a_log_ends_a_launch_there(last: bool, tmp_path: Path) -> None:
    word = at(7, "Preempted by the scheduler: yielding to job 91")
    first = [*steps(1, 60, 0), word] if last else [*steps(1, 40, 0), word, *steps(41, 60, 8)]
    files = {"mill-48300.out": first, "mill-48307.out": [*steps(1, 60, 30), at(37, word)]}
    assert bool(launches(pipeline.ingest_run(place_of(tmp_path, files)))) is last


@pytest.mark.parametrize(
    "files",
    [
        {"node-1.log": [*steps(1, 60, 0), LIMIT], "node-2.log": [*steps(1, 60, 1), LIMIT]},
        {"train-1.log": steps(1, 60, 0), "train-2.log": [*steps(61, 90, 20), at(41, LOST[0]), LOST[1]]},
        {"worker-4711.log": [*bare(1, 9), *LOST], "worker-4712.log": [*bare(1, 9), *LOST]},
        {"job-1.log": [*bare(1, 9), *LOST], "job-2.log": [*bare(1, 9), *LOST]},
        {"train.log.1": [*bare(1, 9), *LOST], "train.log.2": [*bare(1, 9), *LOST]},
        {f"slurm-19_{rank}.out": [f"[rank {rank}] {line}" for line in (*bare(1, 9), *LOST)] for rank in (0, 1)},
    ],
    ids=[
        "of two nodes at one time",
        "of a process that did not end",
        "of unknown order",
        "of a few jobs",
        "rotated",
        "of ranks",
    ],
)
def test_logs_of_one_name_are_no_launches(files: Mapping[str, Sequence[str]], tmp_path: Path) -> None:
    assert launches(pipeline.ingest_run(place_of(tmp_path, files))) == {}


def of_day(first: int, last: int, hour: int) -> list[str]:
    """Records of which each says the time of the day and no date."""
    return [f"{hour:02d}:00:{n // 10:02d} step {n} loss: {3 - n / 100:.3f}" for n in range(first, last + 1)]


@pytest.mark.parametrize("later", [RESUMED, "compiling the model"], ids=["resumed", "began anew"])
def test_a_clock_without_a_date_orders_nothing_against_one_with_a_date(later: str, tmp_path: Path) -> None:
    """The line of the scheduler has a date, so the first log has; the second one says the time of the day alone."""
    files = {"slurm-48300.out": [*of_day(1, 60, 9), LIMIT], "slurm-48307.out": [later, *of_day(61, 90, 11), *LOST]}
    run = pipeline.ingest_run(place_of(tmp_path, files))
    assert launches(run) == {"slurm-48300.out": 0, "slurm-48307.out": 1}
    assert pipeline.report_of(run).verdict.shape is Shape.CRASH


def test_a_life_of_dated_lines_is_no_later_one_than_a_life_whose_clock_has_no_date(tmp_path: Path) -> None:
    told = at(9, "Received Signals.SIGTERM death signal, shutting down workers")  # says nothing of how training ended
    files = {"a/run.log": [*of_day(1, 60, 9), told], "b/run.log": [*of_day(61, 90, 11), *LOST]}
    run = pipeline.ingest_run(place_of(tmp_path, files))
    assert [(one.first, one.last) for one in attempts(run).every] == [(1, 60), (61, 90)]


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (("logs/train_20310506_112100.log", "logs/train_20310506_131500.log"), (0, 1)),
        (("logs/2031-05-06_11-21-00.log", "logs/2031-05-07_09-00-00.log"), (0, 1)),
        (("2031-05-06_11-21-00/main.log", "2031-05-06_13-15-00/main.log"), (0, 1)),
        (("2031-05-06/main.log", "2031-05-07/main.log"), ()),
        (("logs/w0_20310506_112100.log", "logs/w1_20310506_112100.log"), ()),
        (("logs/train_203105.log", "logs/train_203106.log"), ()),
    ],
    ids=["later", "on another day", "of a later folder", "folders of days", "two workers at one time", "no time"],
)
def test_a_log_whose_name_says_a_later_time_is_of_the_next_launch(
    names: Sequence[str], numbers: Sequence[int], tmp_path: Path
) -> None:
    files = {name: [*bare(1, 20), *LOST] for name in names}
    found = launches(pipeline.ingest_run(place_of(tmp_path, files)))
    assert found == dict(zip(names, numbers, strict=False))


def test_logs_without_clocks_follow_each_other_where_the_later_one_loads_a_checkpoint(tmp_path: Path) -> None:
    files = {"run-4711.log": [*bare(1, 60), *LOST], "run-4715.log": [RESUMED, *bare(61, 90), DONE]}
    assert launches(pipeline.ingest_run(place_of(tmp_path, files))) == {"run-4711.log": 0, "run-4715.log": 1}


@pytest.mark.parametrize("name", ["attempt_{}", "try{}", "re-try-{}", "requeue_{}"])
def test_folders_that_say_a_number_are_attempts_though_each_begins_anew(name: str, tmp_path: Path) -> None:
    first, second = name.format(1), name.format(2)
    files = {f"{first}/train.log": [*bare(1, 9), *LOST], f"{second}/train.log": [*bare(1, 60), DONE]}
    run = pipeline.ingest_run(place_of(tmp_path, files))
    assert attempts(run).judged.number == 1
    assert pipeline.report_of(run).verdict.outcome is Outcome.HEALTHY


@pytest.mark.parametrize("off", [0.0, 0.3], ids=["alike", "of another norm"])
def test_a_second_store_of_each_attempt_makes_no_attempts_of_its_own(off: float, tmp_path: Path) -> None:
    def told(first: int, last: int) -> list[str]:
        of = ({"step": n, "train/loss": 3 - n / 100, "grad_norm": 1 + n / 200 + off} for n in range(first, last + 1))
        return [json.dumps(record) for record in of]

    def printed(first: int, last: int) -> list[str]:
        return [f"step {n} loss: {3 - n / 100:.3f} grad_norm: {1 + n / 200:.3f}" for n in range(first, last + 1)]

    files = {
        "run-4711.log": [*printed(1, 60), *LOST],
        "run-4715.log": ["Resuming from checkpoint checkpoints/step_40 at step 40", *printed(41, 90), *LOST],
        "m-4711.jsonl": told(1, 60),
        "m-4715.jsonl": told(41, 90),
    }
    tried = attempts(pipeline.ingest_run(place_of(tmp_path, files)))
    assert [(one.number, one.last, one.failed) for one in tried.every] == [(0, 60, True), (1, 90, True)]
    assert {source: [cut.number for cut in cuts] for source, cuts in tried.cuts.items()} == {
        source: [int("4715" in source)] for source in files
    }


def test_a_store_of_all_attempts_is_cut_where_the_logs_of_each_begin(tmp_path: Path) -> None:
    held = [json.dumps({"step": n, "loss": round(3 - n / 100, 3)}) for n in [*range(1, 61), *range(41, 91)]]
    files = {
        "run-4711.log": [*bare(1, 60), *LOST],
        "run-4715.log": ["Resuming from checkpoint checkpoints/step_40 at step 40", *bare(41, 90), *LOST],
        "metrics.jsonl": held,
    }
    tried = attempts(pipeline.ingest_run(place_of(tmp_path, files)))
    assert {source: [cut.number for cut in cuts] for source, cuts in tried.cuts.items()} == {
        "run-4711.log": [0],
        "run-4715.log": [1],
        "metrics.jsonl": [0, 1],
    }


FAILED = (
    "E0506 10:00:09.0 71 torch/api.py:869] failed (exitcode: -6) local_rank: 1 (pid: 4711) of binary: /opt/py/python3",
    "train.py FAILED",
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2031-05-06_10:00:09",
    "  rank      : 1 (local_rank: 1)",
    "  exitcode  : -6 (pid: 4711)",
    "  traceback : Signal 6 (SIGABRT) received by PID 4711",
)


def test_how_a_rank_of_an_earlier_attempt_ended_is_not_how_the_run_did(tmp_path: Path) -> None:
    resumed = "Resuming from checkpoint checkpoints/step_40 at step 40"
    run = pipeline.ingest_run(place_of(tmp_path, {"train.log": [*bare(1, 60), *FAILED, resumed, *bare(41, 90), *LOST]}))
    assert exits(run).by_rank == {}
    assert pipeline.report_of(run).verdict.cause == "file_missing"


def test_how_a_rank_of_the_last_attempt_ended_is_how_the_run_did(tmp_path: Path) -> None:
    run = pipeline.ingest_run(place_of(tmp_path, {"train.log": [*bare(1, 60), *FAILED]}))
    assert {rank: end.code for rank, end in exits(run).by_rank.items()} == {1: -6}


def test_a_table_of_failures_has_no_head_that_comes_again(tmp_path: Path) -> None:
    host = "  host      : node-1.example"
    first, second = ([*FAILED[3:5], host, f"  rank      : {n} (local_rank: {n})", *FAILED[6:]] for n in (1, 2))
    run = pipeline.ingest_run(place_of(tmp_path, {"launch.log": [FAILED[0], *first, *second]}))
    assert len(attempts(run).every) == 1


def test_launches_of_which_one_tells_no_time_and_none_a_checkpoint_are_not_ordered(tmp_path: Path) -> None:
    folder = "logs/none_{}/attempt_0/0/stdout.log".format
    files = {
        folder("aa"): [at(1, joined(0)), *steps(1, 30, 2), at(9, LOST[0]), LOST[1]],
        folder("bb"): [joined(0), *bare(1, 30), *LOST],
    }
    found = launches(pipeline.ingest_run(place_of(tmp_path, files)))
    assert set(found.values()) <= {0}


@pytest.mark.parametrize(
    ("loaded", "launched"), [(60, {"train.1.log": 0, "train.2.log": 1}), (4000, {})], ids=["its state", "other weights"]
)
def test_a_state_that_was_loaded_is_that_of_the_earlier_launch_where_the_steps_go_on_from_it(
    loaded: int, launched: Mapping[str, int], tmp_path: Path
) -> None:
    died = "RuntimeError: CUDA error: unspecified launch failure"
    on = [f"Loaded checkpoint out/ckpt-{loaded} (iteration {loaded})", *(f"step {n} loss: 2.0" for n in range(61, 90))]
    files = {"train.1.log": [*(f"step {n} loss: 2.5" for n in range(1, 71)), died], "train.2.log": [*on, died]}
    assert launches(pipeline.ingest_run(place_of(tmp_path, files))) == launched
