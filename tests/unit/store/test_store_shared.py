"""One store for many processes: killed, started at once, or publishing under a reader, no answer is wrong."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import registry
from forensics.errors import InputError
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.local import Local
from forensics.io.reading import Opened
from forensics.model import FileStatus, Source
from forensics.pipeline import ingest_run
from forensics.store import compact, digests, disk, fill, manifest, shelf, unit
from forensics.store.gather import issues_of, stored_coverage
from forensics.store.run import Run
from forensics.store.schema import TABLES

#: `make oracles` tries what a claim needs; every change tries a part of it.
MANY = bool(os.environ.get("FORENSICS_TRUE_SIZE"))
KILLS = 200 if MANY else 8
COLD_STARTS = 100 if MANY else 2
VARIANTS = 4
DAY = 86_400
CONTEXT = multiprocessing.get_context("spawn")  # polars has threads: a fork of what imported it may wait forever
PATIENCE_S = 300


def content(variant: int) -> str:
    return "".join(json.dumps({"step": i, "loss": variant + i}) + "\n" for i in range(1, 60 + variant))


def put(run: Path, variant: int) -> None:
    """Give the file of a run other content, all at once."""
    new = run.with_name(".new")
    new.write_text(content(variant))
    new.replace(run / "metrics.jsonl")


def variant_of(run: Run) -> int | None:
    """Tell which content a run was read from; None when its rows are of none of them."""
    values = run.collect("metrics").filter(pl.col("name") == "loss").sort("step")["value"].to_list()
    found = [v for v in range(VARIANTS) if values == [float(v + i) for i in range(1, 60 + v)]]
    logs = run.collect("events").height
    return found[0] if found and logs > 0 and not issues_of(run) else None


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    put(run, 0)
    (run / "train.log").write_text("Traceback (most recent call last):\nValueError: no\n")
    return run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


def home_of(place: Path, run: Path) -> Path:
    return place / disk.run_key(run)


def ingested(run: Path, place: Path, ages: shelf.Ages) -> None:
    found = discover(run)
    job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT)
    disk.ingest_to_disk(job, place, ages)


def said(log: Path, what: str) -> None:
    with log.open("a") as file:
        file.write(f"{what}\n")


def reading(run: Path, place: Path, log: Path) -> None:
    while True:
        try:
            found = ingest_run(run, store=place)
            if variant_of(found) is None:
                said(log, f"wrong: {found.collect('metrics').height} rows, {issues_of(found)}")
        except BaseException as error:  # noqa: BLE001 - whatever ends a command is what this looks for
            said(log, f"{type(error).__name__}: {error}")
        said(log, "read")


def starting(run: Path, place: Path, log: Path, barrier: Barrier) -> None:
    barrier.wait(PATIENCE_S)
    try:
        said(log, f"variant {variant_of(ingest_run(run, store=place))}")
    except BaseException as error:  # noqa: BLE001 - same
        said(log, f"{type(error).__name__}: {error}")


def started(run: Path, place: Path, log: Path) -> BaseProcess:
    process = CONTEXT.Process(target=reading, args=(run, place, log), daemon=True)
    process.start()
    return process


def test_a_file_replaced_after_discovery_by_what_the_store_holds_is_no_fault_of_the_store(
    run: Path, place: Path
) -> None:
    found = discover(run)
    put(run, 3)
    ingested(run, place, shelf.AGES)
    job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT)
    issues = disk.ingest_to_disk(job, place).issues
    assert disk.UNUSABLE not in {issue.code for issue in issues}


def test_a_store_survives_processes_that_are_killed_at_any_time(run: Path, place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    dice = random.Random(7)
    readers = [started(run, place, log) for _ in range(4)]
    deadline = time.monotonic() + PATIENCE_S
    while log.read_text().count("read") < len(readers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for kill in range(KILLS):
        before = log.stat().st_size
        while log.stat().st_size == before:  # somebody reads: the processes are at work
            assert time.monotonic() < deadline
            time.sleep(0.01)
        put(run, kill % VARIANTS)
        time.sleep(dice.random() / 5)
        victim = dice.randrange(len(readers))
        os.kill(readers[victim].pid or 0, signal.SIGKILL)
        readers[victim].join()
        readers[victim] = started(run, place, log)
    for reader in readers:
        reader.kill()
        reader.join()
    assert set(log.read_text().splitlines()) == {"read"}
    assert variant_of(ingest_run(run, store=place)) == (KILLS - 1) % VARIANTS
    ingested(run, place, shelf.Ages(0, 0))
    home = home_of(place, run)
    assert sorted(p.name for p in home.iterdir()) == sorted(["CURRENT", (home / "CURRENT").read_text()])
    assert variant_of(ingest_run(run, store=place)) == (KILLS - 1) % VARIANTS


def test_eight_cold_starts_at_once_all_answer(run: Path, place: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(COLD_STARTS):
        shutil.rmtree(place, ignore_errors=True)
        barrier = CONTEXT.Barrier(8)
        processes = [CONTEXT.Process(target=starting, args=(run, place, log, barrier)) for _ in range(8)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(PATIENCE_S)
    assert log.read_text().splitlines() == ["variant 0"] * 8 * COLD_STARTS
    assert len(list(home_of(place, run).glob("gen-*"))) == 1


def test_a_reader_keeps_its_tables_while_others_publish(run: Path, place: Path) -> None:
    held = ingest_run(run, store=place)
    for variant in (1, 2, 1, 3):
        put(run, variant)
        assert variant_of(ingest_run(run, store=place)) == variant
    assert variant_of(held) == 0
    assert len(list(home_of(place, run).glob("gen-*"))) == 4


def test_content_that_comes_back_has_the_generation_that_it_had(run: Path, place: Path) -> None:
    home = home_of(place, run)
    ingest_run(run, store=place)
    first = (home / "CURRENT").read_text()
    part = next((home / first).glob("metrics-*.parquet"))
    seen = part.stat()
    put(run, 1)
    ingest_run(run, store=place)
    put(run, 0)
    assert variant_of(ingest_run(run, store=place)) == 0
    assert (home / "CURRENT").read_text() == first
    assert (part.stat().st_ino, part.stat().st_mtime_ns) == (seen.st_ino, seen.st_mtime_ns)


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.parametrize(
    ("name", "age_s", "stays"),
    [
        ("gen-" + "1" * 32, 7 * DAY - 60, True),
        ("gen-" + "1" * 32, 7 * DAY + 60, False),
        (".building-1", DAY - 60, True),
        (".building-1", DAY + 60, False),
        (".stale-1", DAY - 60, True),
        (".stale-1", DAY + 60, False),
        (".CURRENT-1", DAY + 60, False),
        ("notes", 99 * DAY, True),
        ("gen-1", 99 * DAY, True),
    ],
)
def test_only_age_removes(run: Path, place: Path, name: str, age_s: float, stays: bool) -> None:
    ingest_run(run, store=place)
    left = home_of(place, run) / name
    left.mkdir()
    (left / "x").write_text("x")
    aged(left, age_s)
    ingest_run(run, store=place)
    assert left.exists() == stays
    assert not list(home_of(place, run).glob(".stale-?????*"))


def test_the_current_generation_stays_however_old_and_is_touched_by_readers(run: Path, place: Path) -> None:
    ingest_run(run, store=place)
    home = home_of(place, run)
    current = home / (home / "CURRENT").read_text()
    aged(current, 99 * DAY)
    shelf.sweep(home, "", shelf.AGES)
    assert current.exists()
    ingest_run(run, store=place)
    assert time.time() - current.stat().st_mtime < DAY


def test_what_is_as_it_was_is_not_read_nor_published_again(
    run: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_run(run, store=place)
    home = home_of(place, run)
    before = sorted((p, p.lstat().st_ino) for p in home.rglob("*"))
    monkeypatch.setattr(unit, "fill", None)
    assert variant_of(ingest_run(run, store=place)) == 0
    assert sorted((p, p.lstat().st_ino) for p in home.rglob("*")) == before


@pytest.mark.parametrize("links", [True, False])
def test_a_source_more_moves_the_parts_of_the_others(
    run: Path, place: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    ingest_run(run, store=place)
    (run / "a.jsonl").write_text(content(1))
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    read: list[str] = []
    once = fill.fill
    monkeypatch.setattr(
        unit, "fill", lambda opening, source, *rest: (read.append(source.path), once(opening, source, *rest))[1]
    )
    kept = ingest_run(run, store=place)
    assert read == ["a.jsonl"]
    fresh = ingest_run(run)
    for table in TABLES:
        assert kept.collect(table).equals(fresh.collect(table), null_equal=True)


def _no_links(*_: object, **__: object) -> None:
    raise PermissionError


def test_a_file_that_goes_while_it_is_moved_is_read_from_the_run(
    run: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_run(run, store=place)
    (run / "a.jsonl").write_text(content(1))
    once = compact.compacted

    def gone(home: Path, work: Path, *rest: Any) -> object:
        monkeypatch.undo()
        for folder in home.glob("*-*"):
            shutil.rmtree(folder)
        work.mkdir()
        return once(home, work, *rest)

    monkeypatch.setattr(compact, "compacted", gone)
    found = ingest_run(run, store=place)
    assert disk.UNUSABLE in {i.code for i in issues_of(found)}
    assert found.collect("metrics").equals(ingest_run(run).collect("metrics"), null_equal=True)


def digest_of(folder: Path, name: str, limits: Limits = DEFAULT) -> str:
    found = discover(folder)
    return digests.digest_of(found.place, next(s for s in found.sources if s.path == name), (), limits)


def test_a_hole_of_fifty_gigabytes_is_hashed_by_its_extent(tmp_path: Path) -> None:
    for name, size, end in (("a", 50 << 30, b"x"), ("b", 50 << 30, b"y"), ("c", (50 << 30) + 4096, b"x")):
        with (tmp_path / name).open("wb") as file:
            file.write(b"head")
            file.seek(size)
            file.write(end)
    start = time.process_time()
    digests = {digest_of(tmp_path, name) for name in "abc"}
    assert len(digests) == 3
    assert "" not in digests
    assert time.process_time() - start < 5, "its zeros were hashed: at 1.6 GB/s that takes 31 s"


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_a_digest_is_of_the_content_and_not_of_the_blocks(tmp_path: Path, block: int) -> None:
    (tmp_path / "a").write_bytes(b"0123456789" * 5)
    assert digest_of(tmp_path, "a", Limits(block_bytes=block)) == hashlib.sha256(b"0123456789" * 5).hexdigest()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Give the disk of `train.log` a fault while it is hashed."""
    fault: dict[str, object] = {}
    once = Opened.span

    def span(self: Opened, offset: int, n: int) -> bytes:
        if self.source.path == "train.log" and n == DEFAULT.block_bytes and fault:
            found = fault["is"]
            if isinstance(found, bytes):
                return found
            raise found  # type: ignore[misc] # an exception
        return once(self, offset, n)

    monkeypatch.setattr(Opened, "span", span)
    return fault


@pytest.mark.parametrize("fault", [b"", InputError("refused"), OSError(5, "EIO"), ValueError("closed")], ids=repr)
def test_a_file_that_cannot_be_hashed_is_read_and_not_used_again(
    run: Path, place: Path, spans: dict[str, object], fault: object
) -> None:
    spans["is"] = fault
    assert digests.digest_of(Local(run), Source("train.log", 54), ()) == ""
    assert variant_of(ingest_run(run, store=place)) == 0
    current = shelf.current(home_of(place, run))
    assert current is not None
    assert [(e.source, e.sha256 != "") for e in current.manifest.sources] == [
        ("metrics.jsonl", True),
        ("train.log", False),
    ]


def test_a_file_that_changes_while_it_is_read_is_not_used_again(
    run: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = fill.fill

    def grows(opening: object, source: Source, *rest: object) -> object:
        answer = once(opening, source, *rest)  # type: ignore[arg-type] # passed on as it came
        with (run / source.path).open("a") as file:
            file.write("more\n") if source.path == "train.log" else None
        return answer

    monkeypatch.setattr(unit, "fill", grows)
    ingest_run(run, store=place)
    current = shelf.current(home_of(place, run))
    assert current is not None
    assert [(e.source, e.sha256 != "") for e in current.manifest.sources] == [
        ("metrics.jsonl", True),
        ("train.log", False),
    ]


def test_a_source_that_fails_fails_alone(run: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = fill.fill

    def fails(opening: object, source: Source, *rest: object) -> object:
        if source.path == "train.log":
            raise pl.exceptions.PanicException("a bug")
        return once(opening, source, *rest)  # type: ignore[arg-type] # passed on as it came

    monkeypatch.setattr(unit, "fill", fails)
    found = ingest_run(run, store=place)
    assert found.collect("metrics").height == 59
    assert [(f.source, f.status) for f in stored_coverage(found).files if f.status is not FileStatus.READ] == [
        ("train.log", FileStatus.SKIPPED)
    ]
    assert [(i.source, i.code, i.message) for i in issues_of(found)] == [
        ("train.log", "ingester-failed", "PanicException: a bug")
    ]
    monkeypatch.undo()
    assert variant_of(ingest_run(run, store=place)) == 0


def test_the_name_of_a_generation_is_the_hash_of_its_manifest(run: Path, place: Path) -> None:
    ingest_run(run, store=place)
    home = home_of(place, run)
    name = (home / "CURRENT").read_text()
    assert manifest.name_of((home / name / manifest.NAME).read_bytes()) == name
    assert manifest.is_folder(name)
    assert not any(map(manifest.is_folder, (name + "\n", name[:-1], "../" + name, name.upper())))
    assert not manifest.is_folder(name, manifest.PACK)
