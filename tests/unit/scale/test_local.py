"""Processes of the local engine: the tables are those of one process, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import registry
from forensics.errors import PlaceError
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT
from forensics.io.slices import Slice
from forensics.model import FileStatus
from forensics.pipeline import ingest_run, report_of
from forensics.report.json_v1 import render
from forensics.scale import choice, local
from forensics.scale.choice import Spread
from forensics.scale.local import Local
from forensics.store import disk, unit
from forensics.store.schema import TABLES
from forensics.store.unit import Item, Record

HERE = Path(__file__).parent
#: A process that greets, takes an item and ends before it begins it.
LEAVES = "import os, sys; os.write(1, bytes(4)); sys.stdin.buffer.read(4); os._exit(1)"
RUNS = Path(__file__).parents[3] / "fixtures" / "runs"
Read = Callable[[Item], Record]


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(HERE)
    import reads_with_faults  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - found beside this file

    return reads_with_faults


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for index in range(12):
        rows = ({"step": step, "loss": index + 1 / step} for step in range(1, 30))
        (run / f"metrics-{index:02d}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def stored(run: Path, place: Path, engine: disk.Map) -> disk.Stored:
    found = discover(run)
    job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT, engine=engine)
    return disk.ingest_to_disk(job, place)


def metrics(found: disk.Stored) -> pl.DataFrame:
    return pl.concat([frame for table, frame in found.tables if table == "metrics"]).collect()


def by(read: Read, jobs: int = 2) -> disk.Map:
    def engine(_: Read, items: Sequence[Item]) -> Iterator[disk.Outcome]:
        return Local(jobs).map_unordered(read, items)

    return engine


def tries(run: Path) -> list[str]:
    return (run.parent / "tries").read_text().splitlines()


@pytest.mark.parametrize("name", sorted(p.name for p in RUNS.iterdir() if p.is_dir())[::6])
@pytest.mark.parametrize("in_memory", [True, False])
def test_two_processes_give_the_tables_and_the_answer_of_one(tmp_path: Path, name: str, in_memory: bool) -> None:
    place = None if in_memory else tmp_path / "place"
    alone, two = ingest_run(RUNS / name), ingest_run(RUNS / name, store=place, spread=Spread(jobs=2))
    for table in TABLES:
        assert alone.collect(table).equals(two.collect(table), null_equal=True), table
    assert "\n".join(render(report_of(alone))) == "\n".join(render(report_of(two)))


def test_an_item_that_ends_its_process_every_time_is_lost_alone_and_named(
    run: Path, tmp_path: Path, faults: Any
) -> None:
    wanted = metrics(stored(run, tmp_path / "sound", disk.one_by_one))
    (run / "poison.jsonl").write_text('{"step": 1, "loss": 2}\n')
    found = stored(run, tmp_path / "place", by(faults.read))
    assert metrics(found).equals(wanted, null_equal=True)
    assert [(f.source, f.reason) for f in found.files if f.status is FileStatus.SKIPPED] == [
        ("poison.jsonl", "unreadable: the process that reads it was ended by SIGKILL, twice")
    ]
    assert [(i.source, i.code) for i in found.issues] == [("poison.jsonl", disk.DIED)]
    assert sum("poison" in line for line in tries(run)) == 2


def test_what_is_lost_is_tried_again_by_the_next_command(run: Path, tmp_path: Path, faults: Any) -> None:
    (run / "poison.jsonl").write_text('{"step": 1, "loss": 2}\n')
    lost = metrics(stored(run, tmp_path / "place", by(faults.read)))
    found = metrics(stored(run, tmp_path / "place", disk.one_by_one))
    assert found.height == lost.height + 1
    assert found.equals(metrics(stored(run, tmp_path / "other", disk.one_by_one)), null_equal=True)


def test_an_item_that_ends_its_process_once_is_read_alone(run: Path, tmp_path: Path, faults: Any) -> None:
    (run / "weak.jsonl").write_text('{"step": 1, "loss": 2}\n')
    found = stored(run, tmp_path / "place", by(faults.read))
    assert found.issues == ()
    assert metrics(found).equals(metrics(stored(run, tmp_path / "sound", disk.one_by_one)), null_equal=True)


def test_processes_that_are_killed_lose_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Any
) -> None:
    monkeypatch.setattr(unit, "_GROUP_FILES", 1)
    started = watched(monkeypatch)
    engine = Local(2).map_unordered(faults.read, items_of(run, tmp_path / "home"))
    done = []
    for outcome in engine:
        assert not isinstance(outcome, disk.Lost)
        done += [one.source.path for one in outcome[0].asked]
        if len(done) in {2, 5}:
            started[-1].kill()
            started[-1].wait()
    assert sorted(done) == sorted(path.name for path in run.iterdir())
    assert len(started) >= 4
    assert all(process.poll() is not None for process in started)


def watched(
    monkeypatch: pytest.MonkeyPatch, then: Callable[[int, subprocess.Popen[bytes]], None] = lambda *_: None
) -> list[subprocess.Popen[bytes]]:
    """The processes that are started from now on; `then` is done with the number of each and itself."""
    started: list[subprocess.Popen[bytes]] = []
    once = subprocess.Popen

    def popen(*args: Any, **named: Any) -> subprocess.Popen[bytes]:
        started.append(once(*args, **named))
        then(len(started), started[-1])
        return started[-1]

    monkeypatch.setattr(local.subprocess, "Popen", popen)
    return started


def names(found: list[Any]) -> list[str]:
    assert not [one for one in found if isinstance(one, disk.Lost)]
    return sorted(asked.source.path for item, _ in found for asked in item.asked)


def test_a_process_that_is_killed_while_it_starts_is_replaced_and_costs_no_item_its_first_try(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Any
) -> None:
    monkeypatch.setattr(unit, "_GROUP_FILES", 1)
    started = watched(monkeypatch, lambda number, process: process.kill() if number in {1, 3} else None)
    found = list(Local(2).map_unordered(faults.read, items_of(run, tmp_path / "home")))
    assert names(found) == sorted(path.name for path in run.iterdir())
    assert len(started) == 4
    assert len(tries(run)) == 12, "each item was tried once"


def test_an_item_that_a_process_never_began_is_not_held_against_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Any
) -> None:
    monkeypatch.setattr(unit, "_GROUP_FILES", 1)
    sound = local._START
    monkeypatch.setattr(local, "_START", LEAVES)
    started = watched(monkeypatch, lambda *_: monkeypatch.setattr(local, "_START", sound))
    found = list(Local(2).map_unordered(faults.read, items_of(run, tmp_path / "home")))
    assert names(found) == sorted(path.name for path in run.iterdir())
    assert len(started) == 3
    assert len(tries(run)) == 12


def test_an_item_that_a_process_died_of_is_never_done_in_the_process_that_asks(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Any
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise BlockingIOError

    (run / "poison.jsonl").write_text('{"step": 1, "loss": 2}\n')
    monkeypatch.setattr(unit, "_GROUP_FILES", 1)
    watched(monkeypatch, lambda at, _: monkeypatch.setattr(local.subprocess, "Popen", refused) if at == 2 else None)
    found = list(Local(2).map_unordered(faults.read, items_of(run, tmp_path / "home")))
    [lost] = [one for one in found if isinstance(one, disk.Lost)]
    assert [asked.source.path for asked in lost.item.asked] == ["poison.jsonl"]
    assert lost.why == (
        "the process that reads it was ended by SIGKILL; then no process can be started to try it again"
    )
    assert len(found) == 13


def items_of(run: Path, home: Path) -> list[Item]:
    home.mkdir()
    found = discover(run)
    return unit.items(unit.address(found.place), home, [unit.Asked(source) for source in found.sources], DEFAULT)


def test_a_process_that_cannot_start_is_replaced_by_this_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_START", "raise SystemExit(1)")
    found = stored(run, tmp_path / "place", Local(2).map_unordered)
    assert metrics(found).equals(metrics(stored(run, tmp_path / "sound", disk.one_by_one)), null_equal=True)
    assert found.issues == ()


def test_a_place_that_refuses_is_said_and_no_process_stays(run: Path, tmp_path: Path) -> None:
    items = items_of(run, tmp_path / "home")
    (tmp_path / "home").rmdir()
    with pytest.raises(PlaceError, match="the store"):
        list(Local(2).map_unordered(unit.read, items))


DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import reads_with_faults
from forensics import registry
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT
from forensics.io.slices import Slice
from forensics.scale.local import Local
from forensics.store import disk, unit
unit._GROUP_FILES = 1
run = Path(sys.argv[1])
found = discover(run)
engine = lambda _, items: Local(2).map_unordered(reads_with_faults.read, items)
job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT, engine=engine)
disk.ingest_to_disk(job, Path(sys.argv[2]))
"""


def driver(run: Path, place: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DRIVER, run, place, HERE])


def test_a_killed_command_goes_on_where_it_ended(run: Path, tmp_path: Path) -> None:
    place, log = tmp_path / "place", tmp_path / "read"
    log.touch()
    killed = driver(run, place)
    while len(log.read_text().splitlines()) < 5:
        assert killed.poll() is None
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert driver(run, place).wait() == 0
    read = Counter(log.read_text().splitlines())
    assert read.keys() == {path.name for path in run.iterdir()}
    assert read.total() <= 12 + 2, "one item for each process"
    found = stored(run, place, disk.one_by_one)
    assert metrics(found).equals(metrics(stored(run, tmp_path / "sound", disk.one_by_one)), null_equal=True)


@pytest.mark.parametrize(
    ("sizes", "processes"),
    [
        ([100] * 266, 1),
        ([100] * 267, 4),
        ([59_000_000] * 2, 1),
        ([61_000_000] * 2, 4),
        ([250_000_000], 1),
        ([250_000_000, 59_000_000], 1),
        ([250_000_000, 61_000_000], 4),
        ([], 1),
    ],
)
def test_processes_are_started_where_they_pay(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], processes: int
) -> None:
    monkeypatch.setattr(choice, "_cores", lambda: 4)
    sources = [unit.Source(str(at), size) for at, size in enumerate(sizes)]
    assert Spread()._processes(choice._costs_s(sources)) == processes
    assert Spread(jobs=3)._processes(sources) == 3
    assert choice.ALONE._processes(sources) == 1


@pytest.mark.parametrize(("slices", "processes"), [(1, 1), (7, 4)])
def test_a_large_file_is_worth_processes_where_it_is_read_in_slices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slices: int, processes: int
) -> None:
    monkeypatch.setattr(choice, "_cores", lambda: 4)
    source = unit.Source("train.log", 900_000_000)
    begins = [900_000_000 * number // slices for number in range(slices + 1)]
    cut = (Slice(number, slices, *begins[number : number + 2], 0, 0) for number in range(slices))
    asked = [unit.Asked(source, part=part) for part in cut] if slices > 1 else [unit.Asked(source)]
    items = unit.items("run", tmp_path, asked, DEFAULT)
    assert Spread()._processes(choice._items_costs_s(items)) == processes
