"""Launches: folders of a launcher beside each other are attempts of one job, or its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from forensics import pipeline
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
