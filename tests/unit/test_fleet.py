"""Many runs in one place are told apart without reading all of them, and only where a few of them are read as runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.fleet import members
from forensics.fleet.members import MANY, fleet_of
from tests.fake_bucket import served


def log(first: int = 1, last: int = 40, rank: int | None = None) -> str:
    tag = "" if rank is None else f"[rank{rank}]: "
    return "".join(
        f"{tag}step {n} | loss {4 - n / 99:.4f} | grad_norm 1.{n % 7} | lr 3.0e-4\n" for n in range(first, last)
    )


def runs(
    top: Path, name: Callable[[int], str], count: int = MANY, text: Callable[[int], str] = lambda _: log()
) -> Path:
    for number in range(count):
        folder = top / name(number)
        folder.mkdir(parents=True)
        (folder / "train.log").write_text(text(number))
    return top


def test_each_folder_is_a_run_in_the_natural_order_of_their_names(tmp_path: Path) -> None:
    found = fleet_of(runs(tmp_path, lambda n: f"lr-sweep-{n}"))
    assert found is not None
    assert [member.place.name for member in found.members] == [f"{tmp_path}/lr-sweep-{n}" for n in range(MANY)]
    assert {member.size_bytes for member in found.members} == {len(log())}
    assert found.beside == ()


def test_few_folders_are_read_together_as_ever(tmp_path: Path) -> None:
    assert fleet_of(runs(tmp_path, lambda n: f"lr-sweep-{n}", MANY - 1)) is None


def test_one_run_is_no_fleet(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(log())
    assert fleet_of(tmp_path) is None
    assert fleet_of(tmp_path / "train.log") is None


def test_runs_below_folders_of_one_name_are_found(tmp_path: Path) -> None:
    runs(tmp_path / "team" / "sweep", lambda n: f"exp-{n}")
    found = fleet_of(tmp_path)
    assert found is not None
    assert found.members[0].place.name == f"{tmp_path}/team/sweep/exp-0"


def test_a_file_beside_the_runs_is_named_and_a_log_that_trains_beside_them_makes_one_run(tmp_path: Path) -> None:
    runs(tmp_path, lambda n: f"exp-{n}")
    (tmp_path / "README.md").write_text("learning rates\n")
    found = fleet_of(tmp_path)
    assert found is not None
    assert found.beside == ("README.md",)
    (tmp_path / "train.log").write_text(log())
    assert fleet_of(tmp_path) is None


@pytest.mark.parametrize("name", ["rank_{}", "node-{}", "attempt_{}", "checkpoint-{}"])
def test_folders_that_are_parts_of_one_job_are_no_runs(tmp_path: Path, name: str) -> None:
    assert fleet_of(runs(tmp_path, name.format)) is None


def test_folders_that_speak_of_different_ranks_are_no_runs(tmp_path: Path) -> None:
    assert fleet_of(runs(tmp_path, lambda n: f"out{n}", text=lambda n: log(rank=n))) is None


def test_folders_each_of_which_goes_on_from_the_last_are_no_runs(tmp_path: Path) -> None:
    assert fleet_of(runs(tmp_path, lambda n: f"job-{n:03}", text=lambda n: log(1 + 40 * n, 41 + 40 * n))) is None


def test_six_folders_are_read_of_any_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs(tmp_path, lambda n: f"exp-{n}", 40)
    read: list[str] = []
    ingest = members.pipeline.ingest_run

    def counted(*args: object, **named: object) -> object:
        run = ingest(*args, **named)  # type: ignore[arg-type]
        read.extend(run.collect("sources")["source"].to_list())
        return run

    monkeypatch.setattr(members.pipeline, "ingest_run", counted)
    assert fleet_of(tmp_path) is not None
    assert sorted(path.split("/")[0] for path in read) == sorted(f"exp-{n}" for n in (0, 1, 20, 21, 38, 39))


def test_a_bucket_holds_a_fleet_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    runs(tmp_path, lambda n: f"exp-{n}")
    with served() as bucket:
        for name, value in bucket.env.items():
            monkeypatch.setenv(name, value)
        bucket.put_folder(tmp_path, "runs")
        found = fleet_of("s3://bucket/runs")
        assert found is not None
        assert [member.place.name for member in found.members][:2] == [
            "s3://bucket/runs/exp-0",
            "s3://bucket/runs/exp-1",
        ]
        assert len(bucket.requests) <= 2 + 6 + 1
