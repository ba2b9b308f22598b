"""Shares of a run that know nothing of each other: read in any order, again and at once, they give the run."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.errors import UsageError
from forensics.pipeline import ingest_run, ingest_shard, report_of
from forensics.report.json_v1 import render
from forensics.scale.choice import Spread
from forensics.scale.shard import Shard, parsed
from forensics.store import unit
from forensics.store.run import Run
from forensics.store.schema import TABLES

ARRAY = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_STEP": "2"}
STEP = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8"}


@pytest.mark.parametrize(
    ("text", "env", "shard"),
    [
        ("0/1", {}, (0, 1)),
        ("15/16", {}, (15, 16)),
        ("auto", STEP, (3, 8)),
        ("auto", ARRAY | {"SLURM_ARRAY_TASK_COUNT": "4"}, (3, 4)),
        ("auto", STEP | ARRAY | {"SLURM_ARRAY_TASK_COUNT": "4"}, (3, 4)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "3"}, (2, 3)),
        ("auto/16", {"JOB_COMPLETION_INDEX": "5"}, (5, 16)),
        ("auto/16", STEP | {"JOB_COMPLETION_INDEX": "5"}, (5, 16)),
    ],
)
def test_a_share_is_named_or_told_by_the_scheduler(text: str, env: dict[str, str], shard: tuple[int, int]) -> None:
    assert parsed(text, env) == Shard(*shard)


@pytest.mark.parametrize(
    ("text", "env", "says"),
    [
        ("16/16", {}, "task 16 of 16 is none of 0 to 15"),
        ("3", {}, "'' is not a number"),
        ("/4", {}, "'' is not a number"),
        ("-1/4", {}, "'-1' is not a number"),
        ("1/٤", {}, "'٤' is not a number"),
        ("auto", {}, "no task of a job array"),
        ("auto", {"JOB_COMPLETION_INDEX": "5"}, "not of how many"),
        ("auto/5", {"JOB_COMPLETION_INDEX": "5"}, "task 5 of 5"),
        ("auto", {"SLURM_PROCID": "x", "SLURM_NTASKS": "8"}, "SLURM_PROCID: 'x'"),
    ],
)
def test_a_share_that_is_none_is_refused(text: str, env: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parsed(text, env)


def test_a_file_keeps_its_share_over_versions_and_machines() -> None:
    paths = ["train.log", "rank_0.log", "a/ä.log", "bad\udcff.log"]
    assert [next(i for i in range(16) if Shard(i, 16).has(path)) for path in paths] == [7, 7, 12, 9]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for rank in range(24):
        lines = (f"step: {step} | loss: {2 + rank / 100 + 1 / (step + 1):.4f}\n" for step in range(30))
        (run / f"rank_{rank}.log").write_text("".join(lines))
    (run / "rank_3.log").write_text("Traceback (most recent call last):\nValueError: no\n")
    return run


def answer(run: Run) -> str:
    return "\n".join(render(report_of(run)))


def assert_is(found: Run, wanted: Run) -> None:
    for table in TABLES:
        assert found.collect(table).equals(wanted.collect(table), null_equal=True), table
    assert answer(found) == answer(wanted)


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_shares_in_any_order_and_repeated_give_the_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    wanted = ingest_run(run)
    shares = [Shard(index, count) for index in range(count)]
    order = random.Random(count).sample([*shares, *shares[: count // 2]], k=count + count // 2)
    rows = {shard: ingest_shard(run, shard, store=tmp_path / "place").collect("metrics").height for shard in order}
    assert sum(rows.values()) == wanted.collect("metrics").height
    monkeypatch.setattr(unit, "fill", None)
    assert_is(ingest_run(run, store=tmp_path / "place"), wanted)


def test_what_no_share_has_read_is_read_at_the_end(run: Path, tmp_path: Path) -> None:
    for index in (0, 2):
        ingest_shard(run, Shard(index, 3), store=tmp_path / "place")
    assert_is(ingest_run(run, store=tmp_path / "place"), ingest_run(run))


def test_a_file_that_changed_after_its_share_was_read_is_read_again(run: Path, tmp_path: Path) -> None:
    ingest_shard(run, Shard(0, 1), store=tmp_path / "place")
    with (run / "rank_5.log").open("a") as file:
        file.write("step: 30 | loss: nan\n")
    assert_is(ingest_run(run, store=tmp_path / "place"), ingest_run(run))


def test_shares_of_other_counts_double_nothing(run: Path, tmp_path: Path) -> None:
    for shard in (Shard(0, 2), Shard(1, 3), Shard(0, 1)):
        ingest_shard(run, shard, store=tmp_path / "place")
    assert_is(ingest_run(run, store=tmp_path / "place"), ingest_run(run))


def test_a_share_may_be_read_by_several_processes(run: Path, tmp_path: Path) -> None:
    ingest_shard(run, Shard(0, 1), store=tmp_path / "place", spread=Spread(jobs=2))
    assert_is(ingest_run(run, store=tmp_path / "place"), ingest_run(run))


def test_the_same_share_twice_at_once_loses_and_doubles_nothing(run: Path, tmp_path: Path) -> None:
    def start(shard: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "forensics", "ingest", run, "--store", tmp_path / "place", "--shard", shard]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    both = [start("0/2"), start("0/2"), start("1/2")]
    assert [process.wait() for process in both] == [0, 0, 0]
    assert_is(ingest_run(run, store=tmp_path / "place"), ingest_run(run))
