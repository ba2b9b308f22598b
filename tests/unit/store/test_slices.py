"""A large source in slices: whoever reads how many of them, the store holds what one reading gives."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from forensics import registry
from forensics.formats.text import slices as text_slices
from forensics.io.blocks import count_lines
from forensics.io.discover import discover
from forensics.io.disk import OpenFile
from forensics.io.limits import DEFAULT
from forensics.io.places.local import Local
from forensics.io.reading import opened_bytes
from forensics.io.slices import Cutting
from forensics.pipeline import ingest_run, ingest_shard
from forensics.scale.choice import Spread
from forensics.scale.shard import Shard
from forensics.store import disk, stamps, unit
from forensics.store.digests import digest_of
from forensics.store.manifest import decoded
from forensics.store.run import Run
from forensics.store.schema import TABLES
from forensics.store.slices import cutting, joining

STEP = 12_000
CUTTING = Cutting(text_slices.CUTTING.joints, step_bytes=STEP, before_bytes=3_000, after_bytes=500, line_bytes=4_000)


def log_lines(count: int) -> Iterator[str]:
    rng, step = random.Random(7), 0
    for n in range(count):
        step = step + 1 if n % 170 != 165 else step - 30
        yield f"[2026-01-01 00:{step // 60 % 60:02d}:{step % 60:02d}] step: {step} | loss: {2 + rng.random():.3f}\n"
        if n % 2:
            yield "OSError: [Errno 28] No space left on device\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cutting, "CUT_FROM_BYTES", 2 * STEP)
    monkeypatch.setattr(text_slices, "CUTTING", CUTTING)
    monkeypatch.setattr(stamps, "_TICK_NS", 0)
    run = tmp_path / "run"
    run.mkdir()
    (run / "train.log").write_text("".join(log_lines(800)))
    (run / "notes.txt").write_text("step: 1 | loss: 2\n")
    return run


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give the numbers of the slices that are read."""
    numbers: list[int] = []
    once = text_slices.read

    def counting(opened: object, out: object, limits: object, part: object) -> str:
        numbers.append(part.number)  # type: ignore[attr-defined]
        return once(opened, out, limits, part)  # type: ignore[arg-type]

    monkeypatch.setattr(text_slices, "read", counting)
    return numbers


def whole(run: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """What one reading of each file gives."""
    with monkeypatch.context() as patched:
        patched.setattr(cutting, "CUT_FROM_BYTES", 1 << 40)
        return ingest_run(run)


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort(
        [name for name in ("source", "seq", "line", "code", "raw_name") if name in rows], maintain_order=True
    )


def assert_same(found: Run, wanted: Run) -> None:
    for table in TABLES:
        assert in_order(found.collect(table)).equals(in_order(wanted.collect(table)), null_equal=True), table


def unjoined(_: object) -> None:
    """No slices fit together."""


def failing(*_: object) -> str:
    raise ValueError("a fault")


def generation(place: Path) -> str:
    return (next(place.iterdir()) / "CURRENT").read_text()


def test_a_log_in_slices_gives_the_tables_of_the_log(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    wanted = whole(run, monkeypatch)
    found = ingest_run(run, store=tmp_path / "store")
    assert sorted(read) == [0, 1, 2, 3, 4]
    assert_same(found, wanted)
    assert found.collect("metrics")["attempt"].max() == 4
    assert found.collect("issues")["code"].to_list() == ["flood", "flood"]


def test_processes_and_shares_give_the_same_generation(run: Path, tmp_path: Path) -> None:
    ingest_run(run, store=tmp_path / "alone")
    ingest_run(run, store=tmp_path / "two", spread=Spread(jobs=2))
    for index in (2, 0, 1, 0):
        ingest_shard(run, Shard(index, 3), store=tmp_path / "shares")
    ingest_run(run, store=tmp_path / "shares")
    assert generation(tmp_path / "two") == generation(tmp_path / "alone") == generation(tmp_path / "shares")


def test_slices_that_were_published_are_not_read_again(run: Path, tmp_path: Path, read: list[int]) -> None:
    shares = [ingest_shard(run, Shard(index, 3), store=tmp_path / "store") for index in range(3)]
    assert len(read) == len(set(read))
    assert sum(share.collect("metrics").height for share in shares) == 800
    read.clear()
    ingest_run(run, store=tmp_path / "store")
    ingest_run(run, store=tmp_path / "store")
    assert read == []


def test_lines_before_slices_that_were_published_are_not_counted_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def counting(data: bytes) -> int:
        counted.append(len(data))
        return count_lines(data)

    monkeypatch.setattr("forensics.io.slices.count_lines", counting)
    ingest_shard(run, Shard(0, 3), store=tmp_path / "store")
    first = sum(counted)
    for index in (1, 2):
        ingest_shard(run, Shard(index, 3), store=tmp_path / "store")
    assert first < sum(counted) < 3 * first
    counted.clear()
    ingest_run(run, store=tmp_path / "store")
    assert counted == []
    assert_same(ingest_run(run, store=tmp_path / "store"), whole(run, monkeypatch))


def test_slices_of_a_log_that_has_changed_since_are_read_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    for index in range(3):
        ingest_shard(run, Shard(index, 3), store=tmp_path / "store")
    count = len(read)
    with (run / "train.log").open("a") as log:
        log.write("step: 900 | loss: nan\n")
    found = ingest_run(run, store=tmp_path / "store")
    assert len(read) == 2 * count
    assert_same(found, whole(run, monkeypatch))


def test_a_log_whose_stamp_alone_has_changed_is_hashed_and_not_read(run: Path, tmp_path: Path, read: list[int]) -> None:
    ingest_run(run, store=tmp_path / "store")
    read.clear()
    os.utime(run / "train.log", (1_700_000_000, 1_700_000_000))
    ingest_run(run, store=tmp_path / "store")
    assert read == []


def test_a_log_that_was_written_anew_is_cut_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest_run(run, store=tmp_path / "store")
    (run / "train.log").write_text("".join(log_lines(900)))
    assert_same(ingest_run(run, store=tmp_path / "store"), whole(run, monkeypatch))


def test_slices_that_do_not_fit_together_are_read_as_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = whole(run, monkeypatch)
    monkeypatch.setattr(text_slices, "joined", unjoined)
    assert_same(ingest_run(run, store=tmp_path / "store"), wanted)


def test_a_slice_that_fails_is_read_with_the_others_as_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = whole(run, monkeypatch)
    monkeypatch.setattr(text_slices, "read", failing)
    assert_same(ingest_run(run, store=tmp_path / "store"), wanted)


def test_the_digest_of_slices_is_that_of_the_file(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.store.digests._RANGE_BYTES", STEP // 2)
    ingest_run(run, store=tmp_path / "store")
    place = Local(run)
    found = next(source for source in discover(place, DEFAULT).sources if source.path == "train.log")
    home = next((tmp_path / "store").iterdir())
    entries = decoded((home / generation(tmp_path / "store") / "manifest.json").read_bytes()).sources
    wanted = digest_of(place, found, registry.load("ingesters").ingesters)
    assert [entry.sha256 for entry in entries if entry.source == "train.log"] == [wanted]
    assert all(entry.slice is None for entry in entries)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("train.log", b"step 1\n" * 2000),
        ("samples.log", b"timestamp, index, utilization.gpu [%]\n" + b"2026/01/01 00:00:00.000, 0, 97 %\n" * 4000),
        ("train.log", b"\xff\xfe" + "step: 1 | loss: 2\n".encode("utf-16-le") * 2000),
        ("train.log", b"\x1f\x8b\x08" + b"x" * 4 * STEP),
        ("train.log", b"no line end " * 4000),
    ],
    ids=["short", "of another reader", "UTF-16", "compressed", "one line"],
)
def test_what_cannot_be_cut_is_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes
) -> None:
    monkeypatch.setattr(cutting, "CUT_FROM_BYTES", 2 * STEP)
    monkeypatch.setattr(text_slices, "CUTTING", CUTTING)
    (tmp_path / name).write_bytes(data)
    place = Local(tmp_path)
    source = discover(place, DEFAULT).sources[0]
    assert joining.planned(place, source, registry.load("ingesters").ingesters, DEFAULT) is None


def test_a_large_file_that_is_no_log_is_not_looked_at_by_other_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "CUT_FROM_BYTES", 2 * STEP)
    (tmp_path / "events.out.tfevents.1").write_bytes(bytes(range(256)) * STEP)
    copied: list[object] = []
    monkeypatch.setattr(OpenFile, "copied", copied.append)
    place = Local(tmp_path)
    source = discover(place, DEFAULT).sources[0]
    assert joining.planned(place, source, registry.load("ingesters").ingesters, DEFAULT) is None
    assert copied == []


def test_no_slice_begins_near_a_traceback() -> None:
    calm = b"step: 1 | loss: 2.5 | lr: 0.1\n"
    data = calm * 380 + b"Traceback (most recent call last)\nValueError: no\n" + calm * 800
    parts = text_slices.cut(opened_bytes("train.log", data), {}, CUTTING)
    at = data.index(b"Traceback")
    assert len(parts) > 1
    assert all(not at - 500 < part.begin < at + 3_000 for part in parts[1:])
    assert parts[1].begin < at - 500


def test_one_core_or_many_the_items_are_the_slices(run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[int] = []
    once = disk.one_by_one

    def counting(function: object, items: list[unit.Item]) -> object:
        seen.extend(sum(one.part is not None for one in item.asked) for item in items)
        return once(function, items)  # type: ignore[arg-type]

    monkeypatch.setattr("forensics.scale.choice.one_by_one", counting)
    ingest_run(run, store=tmp_path / "store")
    assert sum(seen) == len(seen) - 1 > 3
