"""Many runs in one place give the answers that each gives by itself, in one table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forensics.cli import _judge
from forensics.fleet import judging, members
from forensics.fleet.members import Fleet, fleet_of
from forensics.model import Report
from tests.cli.conftest import Call, rows
from tests.fake_bucket import Bucket, served

#: Fewer than `members.MANY`, whose edge `tests/unit/test_fleet.py` holds: each run is judged anew in each test.
RUNS = 8


@pytest.fixture(autouse=True)
def _many_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MANY", RUNS - 2)
    monkeypatch.setattr(judging, "_TASK_RUNS", 3)  # two processes get three tasks, as they do of 18 runs


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return written(tmp_path / "runs", RUNS)


def written(top: Path, count: int) -> Path:
    for number in range(count):
        folder = top / f"exp-{number}"
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text(rows(40 + number if number % 2 else None))
    return top


def test_each_run_has_the_answer_that_it_has_alone(call: Call, runs: Path) -> None:
    done = call("triage", runs, "--format", "json", "--quiet")
    every = json.loads(done.out)["runs"]
    assert len(every) == RUNS
    alone = call("triage", runs / "exp-7", "--format", "json").document
    found = next(one for one in every if one["run"] == f"{runs}/exp-7")
    assert found["verdict"] == alone["verdict"]
    assert found["findings"] == alone["findings"]
    assert done.code == 1


def test_two_processes_print_what_one_prints(call: Call, runs: Path, tmp_path: Path) -> None:
    alone = call("triage", runs, "--jobs", 1, "--history", tmp_path / "past", "--format", "json")
    two = call("triage", runs, "--jobs", 2, "--history", tmp_path / "other", "--format", "json")
    assert (two.code, two.out, two.err) == (alone.code, alone.out, alone.err)
    again = call("triage", runs, "--jobs", 2, "--history", tmp_path / "other")
    assert f"{RUNS} of them are as this version judged them before" in again.err


def test_the_table_names_eight_runs_of_a_failure_and_all_with_v(call: Call, tmp_path: Path) -> None:
    runs = written(tmp_path / "runs", 18)
    done = call("triage", runs)
    assert done.out.startswith("18 runs: 9 failed in the same way")
    assert "  and 1 run more: -v shows them" in done.out
    assert f"note: 18 runs in {runs}: each folder of the place trains from its own start" in done.err
    assert " more: -v" not in call("triage", runs, "-v").out


def test_files_beside_the_runs_are_named_in_a_note(call: Call, runs: Path) -> None:
    (runs / "sweep.yaml").write_text("lr: [1, 2]\n")
    assert "1 file beside the runs of" in call("triage", runs).err


def test_a_run_that_is_gone_meanwhile_costs_itself(call: Call, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(place: object) -> Fleet | None:
        found = fleet_of(place)  # type: ignore[arg-type]
        shutil.rmtree(runs / "exp-3")
        return found

    monkeypatch.setattr(_judge, "fleet_of", gone)
    done = call("triage", runs)
    assert done.out.startswith(f"{RUNS - 1} runs: ")
    assert "a run could not be read: no such file or directory" in done.err


def test_runs_in_the_history_that_did_not_change_are_told_again_and_not_judged_again(
    call: Call, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = tmp_path / "history"
    lost = "".join(f'{{"step": {n}, "loss": {"NaN" if n > 20 else 3 - n / 100}}}\n' for n in range(1, 41))
    (runs / "exp-5" / "metrics.jsonl").write_text(lost)
    first = call("triage", runs, "--history", past, "--format", "json")
    (runs / "exp-4" / "metrics.jsonl").write_text(rows(33))
    judged = list[str]()
    judge = judging.pipeline.report_of
    monkeypatch.setattr(judging.pipeline, "report_of", lambda run, *more: judged.append(run.name) or judge(run, *more))
    done = call("triage", runs, "--history", past, "--format", "json")
    assert judged == [str(runs / "exp-4")]
    assert f"{RUNS - 1} of them are as this version judged them before: forensics history {past}" in done.err
    assert done.code == first.code == 1
    answers = [[(run["run"], said["outcome"], said["shape"], said["cause"], said["onset"]["step"], said["identity"])
                for run in one.document["runs"] if (said := run["verdict"]) and "exp-4" not in run["run"]]
               for one in (first, done)]  # fmt: skip
    assert answers[0] == answers[1]
    [lead] = [run["findings"][0] for run in done.document["runs"] if run["run"].endswith("exp-5")]
    assert (lead["rule"], lead["severity"], lead["evidence"][0]["line"]) == ("NAN001", "error", 21)
    compared = call("triage", runs, "--history", past, "--baseline", runs / "exp-0", "--format", "json")
    assert len(compared.document["runs"]) == RUNS


def test_a_fleet_that_is_stopped_goes_on_from_where_it_was(
    call: Call, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = tmp_path / "history"
    judge = judging.pipeline.report_of
    judged = 0

    def stopped(*given: Any) -> Report:
        nonlocal judged
        judged += 1
        if judged == 5:
            raise KeyboardInterrupt
        return judge(*given)

    monkeypatch.setattr(judging.pipeline, "report_of", stopped)
    assert call("triage", runs, "--history", past).code == 130
    done = call("triage", runs, "--history", past)
    assert "4 of them are as this version judged them before" in done.err


def test_the_table_of_a_bucket_is_that_of_the_folder(call: Call, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    with _bucket_of(runs, monkeypatch):
        found = call("triage", "s3://bucket/runs", "-v").out
    assert found == call("triage", runs, "-v").out.replace(str(runs), "s3://bucket/runs")


def test_a_bucket_that_fails_each_tenth_request_loses_and_doubles_nothing(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    runs = written(tmp_path / "runs", 18)
    wanted = call("triage", runs, "-v").out.replace(str(runs), "s3://bucket/runs")
    with _bucket_of(runs, monkeypatch) as bucket:
        bucket.fail_each = 10
        line = ("triage", "s3://bucket/runs", "--history", "s3://bucket/past", "-v")
        assert call(*line).out == wanted
        assert "18 of them are as this version judged them before" in call(*line).err
        assert len(bucket.requests) > 10 * 2


@contextmanager
def _bucket_of(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Bucket]:
    with served() as bucket:
        for name, value in bucket.env.items():
            monkeypatch.setenv(name, value)
        bucket.put_folder(runs, "runs")
        yield bucket
