"""The sink's account always balances, and the store on disk reads again only what changed."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.model import FileStatus, Source
from forensics.pipeline import ingest_run
from forensics.store import disk, shelf
from forensics.store.manifest import Entry
from forensics.store.schema import TABLES, conform
from forensics.store.sink import SourceSink

RUNS = Path(__file__).parents[3] / "fixtures" / "runs"


@given(size=st.integers(0, 10_000), read=st.integers(0, 20_000), skipped=st.integers(0, 20_000))
def test_the_account_of_a_source_always_balances(size: int, read: int, skipped: int) -> None:
    sink = SourceSink(Source("a", size))
    sink.account(read_bytes=read, skipped_bytes=skipped, reason="damaged")
    coverage = sink.coverage("x")
    assert coverage.read_bytes + coverage.skipped_bytes == size
    assert coverage.skipped_bytes == 0 or coverage.reason
    assert (coverage.status is FileStatus.READ) == (coverage.skipped_bytes == 0)


def test_nan_stays_nan_and_null_stays_null() -> None:
    sink = SourceSink(Source("a", 1))
    sink.rows("metrics", {"name": ["a", "b", "c", "d"], "value": [math.nan, None, math.inf, 1.0]})
    frame = sink.frames()["metrics"]
    assert frame["value_class"].to_list() == ["nan", "null", "+inf", "finite"]
    assert frame["value"].is_nan().to_list() == [True, None, False, False]


def test_a_class_that_a_reader_invents_counts_as_not_told() -> None:
    told = ["filtered-by-writer", "smashed", "nan", None]
    frame = conform("metrics", pl.DataFrame({"value": [None, math.inf, None, 1.0], "value_class": told}))
    assert frame["value_class"].to_list() == ["filtered-by-writer", "+inf", "nan", "finite"]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(KeyError, match="colour"):
        conform("metrics", pl.DataFrame({"colour": [1]}))


def frames_of(path: Path, store: Path | None) -> dict[str, pl.DataFrame]:
    run = ingest_run(path, store=store)
    return {table: run.collect(table) for table in TABLES}


def test_the_store_on_disk_holds_what_memory_holds(tmp_path: Path) -> None:
    for run in sorted(p for p in RUNS.iterdir() if p.is_dir()):
        in_memory, on_disk = frames_of(run, None), frames_of(run, tmp_path / "store")
        for table, frame in in_memory.items():
            assert frame.equals(on_disk[table], null_equal=True), (run.name, table)


def home_of(store: Path, run: Path) -> Path:
    return store / disk.run_key(run)


def entries_of(store: Path, run: Path) -> dict[str, Entry]:
    current = shelf.current(home_of(store, run))
    assert current is not None
    return {entry.source: entry for entry in current.manifest.sources}


WAITED = (
    "[E ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, "
    "NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600017 milliseconds before timing out.\n"
)
STACK = """Process 42: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 42 (active): "MainThread"
    forward (model.py:30)
    <module> (train.py:99)
"""


def test_a_rank_that_no_file_names_is_no_damage_of_the_store(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text(WAITED)
    (run / "dump.txt").write_text(STACK)
    in_memory, on_disk = frames_of(run, None), frames_of(run, tmp_path / "store")
    for table in ("collectives", "stack_frames"):
        assert in_memory[table]["rank"].to_list() == [None] * in_memory[table].height != []
        assert on_disk[table].equals(in_memory[table])


def test_only_a_changed_file_is_read_again(tmp_path: Path) -> None:
    run, store = tmp_path / "run", tmp_path / "store"
    shutil.copytree(RUNS / "nan-hidden-hf", run)
    ingest_run(run, store=store)
    first = entries_of(store, run)
    with (run / "train.out").open("a") as file:
        file.write("one more line\n")
    ingest_run(run, store=store)
    second = entries_of(store, run)
    changed = {s for s in second if second[s] != first[s]}
    assert changed == {"train.out"}


def test_a_damaged_part_is_read_again_from_the_run(tmp_path: Path) -> None:
    run, store = RUNS / "nan-blowup-kempnerforge", tmp_path
    before = frames_of(run, store)
    part = next(home_of(store, run).glob("gen-*/metrics-*.parquet"))
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 0xFF
    part.write_bytes(data)
    after = frames_of(run, store)
    assert before["metrics"].equals(after["metrics"], null_equal=True)


def test_a_damaged_manifest_means_reading_all_again(tmp_path: Path) -> None:
    run = RUNS / "crash-key-error"
    before = frames_of(run, tmp_path)
    next(home_of(tmp_path, run).glob("gen-*/manifest.json")).write_text("{")
    assert frames_of(run, tmp_path)["events"].equals(before["events"], null_equal=True)
