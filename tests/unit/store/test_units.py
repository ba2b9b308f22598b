"""Reading in units: any division into items and files gives the tables of the run, and what is as it was stays shut."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from forensics import registry
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.local import Local
from forensics.io.places.place import Place
from forensics.model import Source
from forensics.pipeline import ingest_run, ingest_shard
from forensics.scale.shard import Shard
from forensics.store import digests, disk, manifest, stamps, unit
from forensics.store.manifest import Entry, Part, Share, manifest_of
from forensics.store.parts import pieces
from forensics.store.run import Run
from forensics.store.schema import TABLES
from forensics.values import replace

RUNS = Path(__file__).parents[3] / "fixtures" / "runs"


def tables(run: Run) -> dict[str, pl.DataFrame]:
    return {table: run.collect(table) for table in TABLES}


def stored(run: Path, place: Path, limits: Limits = DEFAULT) -> dict[str, pl.DataFrame]:
    return tables(ingest_run(run, store=place, limits=limits))


def assert_same(found: dict[str, pl.DataFrame], wanted: dict[str, pl.DataFrame]) -> None:
    for table, frame in wanted.items():
        assert frame.equals(found[table], null_equal=True), table


def rows(step: int, count: int) -> str:
    return "".join(f'{{"step": {step + i}, "loss": {1 + i / 7}}}\n' for i in range(count))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for index in range(12):
        (run / f"metrics-{index:02d}.jsonl").write_text(rows(100 * index, 5 + index))
    (run / "train.log").write_text("Traceback (most recent call last):\nValueError: no\n")
    return run


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the files of the run that were opened; a file may be believed however young it is."""
    monkeypatch.setattr(stamps, "_TICK_NS", 0)
    seen: list[str] = []
    once = unit.open_source

    def opening(place: Place, source: Source, limits: Limits) -> object:
        seen.append(source.path)
        return once(place, source, limits)

    monkeypatch.setattr(unit, "open_source", opening)
    monkeypatch.setattr(digests, "open_source", opening)
    return seen


@pytest.mark.parametrize("part_rows", [1, 7, 20, 64, 250_000])
@pytest.mark.parametrize("small_bytes", [0, 200, 256 << 10])
def test_any_size_of_files_and_items_gives_the_same_tables(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_rows: int, small_bytes: int
) -> None:
    monkeypatch.setattr(unit, "SMALL_BYTES", small_bytes)
    monkeypatch.setattr(unit, "SPILL_BYTES", small_bytes // 2)
    limits = replace(DEFAULT, part_rows=part_rows)
    assert_same(stored(run, tmp_path / "place", limits), tables(ingest_run(run)))
    (run / "metrics-05.jsonl").write_text(rows(7, 9))
    (run / "metrics-03.jsonl").unlink()
    (run / "metrics-99.jsonl").write_text(rows(9_900, 40))
    assert_same(stored(run, tmp_path / "place", limits), tables(ingest_run(run)))


def test_small_sources_share_a_file_of_each_table(run: Path, tmp_path: Path) -> None:
    stored(run, tmp_path / "place")
    [generation] = (tmp_path / "place").glob("*/gen-*")
    assert sorted(path.name for path in generation.glob("*.parquet")) == ["events-0000.parquet", "metrics-0000.parquet"]


def test_of_a_run_that_did_not_change_no_file_is_opened(run: Path, tmp_path: Path, opened: list[str]) -> None:
    wanted = stored(run, tmp_path / "place")
    opened.clear()
    assert_same(stored(run, tmp_path / "place"), wanted)
    assert opened == []


def test_one_changed_file_alone_is_opened(run: Path, tmp_path: Path, opened: list[str]) -> None:
    stored(run, tmp_path / "place")
    with (run / "metrics-05.jsonl").open("a") as file:
        file.write(rows(900, 1))
    opened.clear()
    assert_same(stored(run, tmp_path / "place"), tables(ingest_run(run)))
    assert set(opened) == {"metrics-05.jsonl"}


def test_of_packs_only_one_with_what_has_changed_is_looked_at(
    run: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit, "SMALL_BYTES", 0)
    place, decoded = tmp_path / "place", manifest.decoded
    looked_at: list[bytes] = []

    def looking(data: bytes) -> manifest.Manifest:
        looked_at.append(data)
        return decoded(data)

    stored(run, place)
    monkeypatch.setattr(manifest, "decoded", looking)
    for step, has_been_read in enumerate((False, True)):
        with (run / "metrics-05.jsonl").open("a") as file:
            file.write(rows(900 + step, 1))
        if has_been_read:  # by whoever reads a share
            ingest_shard(run, Shard(0, 1), store=place)
        opened.clear()
        looked_at.clear()
        assert_same(stored(run, place), tables(ingest_run(run)))
        assert len(looked_at) == 2, "the generation, and the pack of the file"
        assert set(opened) == (set() if has_been_read else {"metrics-05.jsonl"})


def test_a_file_rewritten_with_its_size_and_time_is_read_again(run: Path, tmp_path: Path, opened: list[str]) -> None:
    path = run / "metrics-05.jsonl"
    stored(run, tmp_path / "place")
    seen = path.stat()
    path.write_text(path.read_text().replace("1.0", "2.0"))
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_size == seen.st_size
    assert_same(stored(run, tmp_path / "place"), tables(ingest_run(run)))
    assert "metrics-05.jsonl" in opened


def test_a_touched_file_is_hashed_and_not_read_again(
    run: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = stored(run, tmp_path / "place")
    os.utime(run / "metrics-05.jsonl", (5, 5))
    opened.clear()
    monkeypatch.setattr(unit, "fill", None)
    found = stored(run, tmp_path / "place")
    assert found["metrics"].equals(wanted["metrics"], null_equal=True)
    assert opened == ["metrics-05.jsonl"]
    opened.clear()
    stored(run, tmp_path / "place")
    assert opened == [], "the new stamp is kept"


def test_a_file_that_was_just_written_has_no_stamp(run: Path) -> None:
    [source, *_] = discover(run).sources
    assert stamps.stamp_of(Local(run), source, ()) == ""


def test_a_file_read_with_another_is_a_part_of_its_stamp(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "_TICK_NS", 0)
    ingesters = registry.load("ingesters").ingesters
    [source, *_] = discover(run).sources
    before = stamps.stamp_of(Local(run), source, ingesters)
    (run / f"{source.path}-wal").write_text("x")
    assert before != stamps.stamp_of(Local(run), source, ingesters) != ""


def test_a_rank_learned_from_another_file_is_read_anew(run: Path, tmp_path: Path) -> None:
    for task in range(2):
        (run / f"slurm-7_{task}.out").write_text("loading\nstep 1 loss 2.5\n")
    before = stored(run, tmp_path / "place")
    (run / "slurm-7_1.out").write_text("[rank1]: step 1 loss 2.5\n")
    after = stored(run, tmp_path / "place")
    assert before["sources"]["rank"].to_list() != after["sources"]["rank"].to_list()
    assert_same(after, tables(ingest_run(run)))


def test_a_damaged_pack_is_no_pack(run: Path, tmp_path: Path) -> None:
    wanted = stored(run, tmp_path / "place")
    [home] = (tmp_path / "place").iterdir()
    (home / "CURRENT").unlink()
    for path in home.glob("pack-*/metrics-0000.parquet"):
        os.truncate(path, 100)
    found = ingest_run(run, store=tmp_path / "place")
    assert found.collect("metrics").equals(wanted["metrics"], null_equal=True)
    assert disk.UNUSABLE in found.collect("issues")["code"].to_list()


def test_rows_lie_where_the_order_of_sources_and_files_says() -> None:
    def entry(name: str, *shares: Share) -> Entry:
        lost = unit.lost(Source(name, 1), "", "", unit.Issue(name, "x", "x"))
        return replace(lost, shares=shares)

    found = pieces(
        "f",
        manifest_of(
            [
                entry("a", Share("metrics", 5), Share("events", 1)),
                entry("b", Share("metrics", 4)),
                entry("c"),
                entry("d", Share("metrics", 1)),
            ],
            [Part("events", 1, 1, ""), Part("metrics", 3, 1, ""), Part("metrics", 6, 1, ""), Part("metrics", 1, 1, "")],
        ),
    )
    assert [[(piece.file, piece.first, piece.rows) for piece in own] for own in found] == [
        [("metrics-0000.parquet", 0, 3), ("metrics-0001.parquet", 0, 2), ("events-0000.parquet", 0, 1)],
        [("metrics-0001.parquet", 2, 4)],
        [],
        [("metrics-0002.parquet", 0, 1)],
    ]


def test_small_sources_are_read_together_and_large_ones_first_and_alone() -> None:
    sizes = [3, unit.SMALL_BYTES, *[4] * 40, 1 << 30]
    asked = [unit.Asked(Source(f"{at}", size)) for at, size in enumerate(sizes)]
    found = unit.items("/run", Path("/home"), asked, DEFAULT)
    assert [[one.source.path for one in item.asked] for item in found[:2]] == [["42"], ["1"]]
    assert sorted(len(item.asked) for item in found) == [1, 1, 9, 32]
    assert sorted(one.source.path for item in found for one in item.asked) == sorted(map(str, range(43)))


def test_a_group_of_small_sources_is_of_few_bytes() -> None:
    size = unit.SMALL_BYTES - 1
    found = unit.items("/run", Path("/home"), [unit.Asked(Source(f"{at}", size)) for at in range(20)], DEFAULT)
    assert all(item.size_bytes <= 2 << 20 for item in found)
    assert len(found) == 3
