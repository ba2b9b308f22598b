"""Many runs in one place give the answers that each gives by itself, in one table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics import fleet
from forensics.cli import _judge
from forensics.fleet import Fleet, fleet_of
from tests.cli.conftest import Call, rows

RUNS = fleet.MANY + 2


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    top = tmp_path / "runs"
    for number in range(RUNS):
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


def test_the_table_names_eight_runs_of_a_failure_and_all_with_v(call: Call, runs: Path) -> None:
    done = call("triage", runs)
    assert done.out.startswith(f"{RUNS} runs: {RUNS // 2} failed in the same way")
    assert "  and 1 run more: -v shows them" in done.out
    assert f"note: {RUNS} runs in {runs}: each folder of the place trains from its own start" in done.err
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


def test_the_table_of_a_bucket_is_that_of_the_folder(call: Call, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    for done in _in_a_bucket(call, runs, monkeypatch):
        assert done == call("triage", runs, "-v").out.replace(str(runs), "s3://bucket/runs")


def _in_a_bucket(call: Call, runs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from tests.fake_bucket import served  # noqa: PLC0415 - only where there is a client

    with served() as bucket:
        for name, value in bucket.env.items():
            monkeypatch.setenv(name, value)
        bucket.put_folder(runs, "runs")
        yield call("triage", "s3://bucket/runs", "-v").out
