"""A store that somebody changed is not believed: the verdict is that of the run, and nothing else is written to."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.errors import UsageError
from forensics.pipeline import ingest_run, triage
from forensics.store import disk, manifest
from forensics.store.gather import issues_of
from forensics.store.run import Run
from forensics.store.schema import TABLES

Entry = dict[str, Any]
ISSUE: Entry = {"source": "metrics.jsonl", "code": "x", "message": "x", "byte": 0, "line": None, "count": 1}


@dataclass(frozen=True)
class Store:
    """The store of one run, and places around it that must stay as they are."""

    root: Path

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def place(self) -> Path:
        return self.root / "place"

    @property
    def home(self) -> Path:
        return self.place / disk.run_key(self.run)

    @property
    def pointer(self) -> Path:
        return self.home / "CURRENT"

    @property
    def generation(self) -> Path:
        return self.home / self.pointer.read_text()

    @property
    def part(self) -> Path:
        return self.generation / "metrics-0000.parquet"

    def tree(self) -> dict[str, str]:
        """Everything that is no store."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for top in (self.run, self.outside)
            for path in sorted(top.rglob("*"))
        }

    def forged(self, change: Callable[[list[Entry]], object], what: str = "sources") -> None:
        """Change the manifest, and make every name and checksum of manifests fit."""
        document = json.loads((self.generation / "manifest.json").read_bytes())
        change(document[what])
        self.published(json.dumps(document).encode())

    def published(self, data: bytes) -> None:
        old, new = self.generation, self.home / manifest.name_of(data)
        old.rename(new)
        (new / "manifest.json").write_bytes(data)
        self.pointer.write_text(new.name)

    def forged_part(self, content: bytes | pl.DataFrame) -> None:
        """Replace the rows of the metrics, and make every checksum fit."""
        path = self.part
        if isinstance(content, pl.DataFrame):
            content.write_parquet(path)
        else:
            path.write_bytes(content)
        data = path.read_bytes()

        def change(files: list[Entry]) -> None:
            of_metrics(files).update(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))

        self.forged(change, "parts")

    def metrics(self) -> pl.DataFrame:
        return pl.read_parquet(self.part)

    def replaced(self, path: Path, by: Path) -> None:
        """Put a link to a copy outside where something of the store was."""
        shutil.move(path, by)
        path.symlink_to(by)


def tables(run: Run) -> dict[str, pl.DataFrame]:
    """Everything that a verdict is made of."""
    return {table: run.collect(table) for table in TABLES if table != "issues"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Run]:
    store = Store(tmp_path_factory.mktemp("store"))
    store.run.mkdir()
    store.outside.mkdir()
    (store.outside / "bait").write_text("as it was")
    rows = ({"step": i, "loss": 4 - i / 50 if i < 51 else float("nan"), "grad_norm": 1.0} for i in range(1, 81))
    (store.run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (store.run / "train.log").write_text("step 51 loss: nan\nTraceback (most recent call last):\nValueError: no loss\n")
    run = ingest_run(store.run)
    assert run.collect("metrics").height == 161
    ingest_run(store.run, store=store.place)
    store.place.rename(store.root / "sound")
    return store, run


@pytest.fixture
def store(sound: tuple[Store, Run]) -> Iterator[Store]:
    store, _ = sound
    shutil.copytree(store.root / "sound", store.place)
    yield store
    for left in (store.place, *store.outside.iterdir()):
        if left.is_symlink() or left.is_file():
            left.unlink() if left.name != "bait" else None
        else:
            shutil.rmtree(left)


def flipped(store: Store) -> None:
    data = bytearray(store.part.read_bytes())
    data[len(data) // 2] ^= 0xFF
    store.part.write_bytes(data)


def made_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def made_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "x").write_text("x")


def first(entries: list[Entry]) -> Entry:
    assert (entries[0]["source"], entries[0]["shares"]) == ("metrics.jsonl", [{"table": "metrics", "rows": 160}])
    return entries[0]


def of_metrics(files: list[Entry]) -> Entry:
    return next(file for file in files if file["table"] == "metrics")


def of_part(**change: object) -> Callable[[Store], None]:
    return lambda store: store.forged(lambda files: of_metrics(files).update(change), "parts")


def of_share(**change: object) -> Callable[[Store], None]:
    return lambda store: store.forged(lambda entries: first(entries)["shares"][0].update(change))


def of_both(rows: int) -> Callable[[Store], None]:
    def change(store: Store) -> None:
        of_share(rows=160 + rows - 161)(store)
        of_part(rows=rows)(store)

    return change


def of_coverage(**change: object) -> Callable[[Store], None]:
    return lambda store: store.forged(lambda entries: first(entries)["coverage"].update(change))


def of_entry(**change: object) -> Callable[[Store], None]:
    return lambda store: store.forged(lambda entries: first(entries).update(change))


def of_issue(**change: object) -> Callable[[Store], None]:
    return lambda store: store.forged(lambda entries: first(entries)["issues"].append(ISSUE | change))


def with_broken_page(store: Store) -> None:
    data = bytearray(store.part.read_bytes())
    data[8:200] = bytes(192)
    store.forged_part(bytes(data))


def grown(path: Path) -> None:
    os.truncate(path, 3 << 30)  # a hole: it takes no room


#: What is done to a store, and what the statement of it says.
TAMPERINGS: dict[str, tuple[Callable[[Store], object], str]] = {
    "a byte of a part is another": (flipped, "metrics: its checksum does not hold"),
    "a part is cut": (lambda s: os.truncate(s.part, 100), "metrics: its checksum does not hold"),
    "a part is a link to a file": (lambda s: s.replaced(s.part, s.outside / "part"), "cannot be opened"),
    "a part is a pipe": (lambda s: made_fifo(s.part), "is a fifo"),
    "a part is a folder": (lambda s: made_folder(s.part), "is a folder"),
    "a part is gone": (lambda s: s.part.unlink(), "cannot be opened"),
    "a part is of 3 GB": (lambda s: grown(s.part), "may have"),
    "a generation is a link": (lambda s: s.replaced(s.generation, s.outside / "generation"), "is a link"),
    "a generation is gone": (lambda s: shutil.rmtree(s.generation), "cannot be opened"),
    "the manifest is a link": (lambda s: s.replaced(s.generation / "manifest.json", s.outside / "m"), "be opened"),
    "the manifest is cut": (lambda s: os.truncate(s.generation / "manifest.json", 90), "another checksum"),
    "the manifest is of 3 GB": (lambda s: grown(s.generation / "manifest.json"), "may have 268435456"),
    "the manifest is a pipe": (lambda s: made_fifo(s.generation / "manifest.json"), "is a fifo"),
    "the manifest is gone": (lambda s: (s.generation / "manifest.json").unlink(), "cannot be opened"),
    "the pointer leads out": (lambda s: s.pointer.write_text("../../outside"), "names no generation"),
    "the pointer is an absolute path": (lambda s: s.pointer.write_text(str(s.outside)[:36]), "names no generation"),
    "the pointer is long": (lambda s: s.pointer.write_text("gen-" + "0" * 33), "37 bytes and may have 36"),
    "the pointer is empty": (lambda s: s.pointer.write_text(""), "names no generation"),
    "the pointer is no text": (lambda s: s.pointer.write_bytes(b"\xff\0" * 18), "names no generation"),
    "the pointer is a folder": (lambda s: made_folder(s.pointer), "is a folder"),
    "the pointer is a pipe": (lambda s: made_fifo(s.pointer), "is a fifo"),
    "the pointer is a link": (lambda s: s.replaced(s.pointer, s.outside / "pointer"), "cannot be opened"),
    "the manifest is no object": (lambda s: s.published(b"[]"), "cannot be read"),
    "the manifest is no JSON": (lambda s: s.published(b"\xff{"), "cannot be read"),
    "the manifest is brackets": (lambda s: s.published(b"[" * 1_000_000), "cannot be read"),
    "the manifest is objects": (lambda s: s.published(b'{"sources":' * 100_000), "cannot be read"),
    "a table is a path": (of_part(table="../../../outside/x"), "sense: a part"),
    "a table is unknown": (of_part(table="passwords"), "sense: a part"),
    "a table is another": (of_part(table="events"), "gave other rows than its parts hold"),
    "a table is a list": (of_part(table=["metrics"]), "cannot be read"),
    "a part has no rows": (of_part(rows=0), "sense: a part"),
    "a part has fewer rows than none": (of_part(rows=-1), "sense: a part"),
    "a part has 1.5 rows": (of_part(rows=1.5), "cannot be read"),
    "a part has more rows than its sources gave": (of_part(rows=162), "gave other rows than its parts hold"),
    "a part has more rows than there are": (of_both(rows=162), "metrics: it has other rows"),
    "a part has 2 to the 80 rows": (of_part(rows=1 << 80), "sense: a part"),
    "a source gave rows of an unknown table": (of_share(table="passwords"), "the rows of"),
    "a source gave no rows": (of_share(rows=0), "the rows of"),
    "a source gave rows of the next one": (of_share(rows=161), "gave other rows than its parts hold"),
    "a part has another size": (of_part(size_bytes=1 << 62), "its checksum does not hold"),
    "a checksum is a path": (of_entry(sha256="../../outside/bait"), "the checksum of"),
    "a source is a path": (of_entry(source="../outside/bait"), "the coverage of"),
    "a source is null": (of_entry(source=None), "cannot be read"),
    "a source is there twice": (lambda s: s.forged(lambda e: e.append(e[0])), "twice"),
    "shares are null": (of_entry(shares=None), "cannot be read"),
    "shares are a number": (of_entry(shares=1e308), "cannot be read"),
    "more bytes were read than there are": (of_coverage(read_bytes=1 << 70), "the account of bytes"),
    "fewer bytes were read than none": (of_coverage(read_bytes=-1, skipped_bytes=1), "the account of bytes"),
    "the file had another size": (of_coverage(size_bytes=5, read_bytes=5), "is not so"),
    "all is read and yet it is skipped": (of_coverage(status="skipped"), "the coverage of"),
    "a status is unknown": (of_coverage(status="fine"), "cannot be read"),
    "records are below none": (of_coverage(records=-1), "the account of bytes"),
    "nobody known has read it": (of_coverage(ingester="nobody"), "by nobody known"),
    "the coverage is of another file": (of_coverage(source="train.log"), "the coverage of"),
    "an issue is of another file": (of_issue(source="train.log"), "an issue of"),
    "an issue is at byte 2 to the 70": (of_issue(byte=1 << 70), "an issue of"),
    "an issue is at a line below none": (of_issue(line=-1), "an issue of"),
    "an issue is no text": (of_issue(message=7), "cannot be read"),
    "there are more issues than a file may have": (
        lambda s: s.forged(lambda e: first(e)["issues"].extend([{**ISSUE, "byte": i} for i in range(1_001)])),
        "is not so",
    ),
    "a part is CSV": (lambda s: s.forged_part(b"a,b\n1,2\n"), "metrics: it is no Parquet"),
    "a part has a broken page": (with_broken_page, "metrics: it"),
    "a part is empty": (lambda s: s.forged_part(b""), "metrics: it is no Parquet"),
    "a part has foreign columns": (lambda s: s.forged_part(pl.DataFrame({"x": [1]})), "it has other columns"),
    "a part has one column more": (lambda s: s.forged_part(s.metrics().with_columns(x=1)), "it has other columns"),
    "a part has one column less": (lambda s: s.forged_part(s.metrics().drop("rank")), "it has other columns"),
    "a column is of another type": (
        lambda s: s.forged_part(s.metrics().with_columns(pl.col("step").cast(pl.String))),
        "it has other columns",
    ),
    "a column has another place": (lambda s: s.forged_part(s.metrics().select(sorted(TABLES["metrics"]))), "columns"),
    "a part has fewer rows": (lambda s: s.forged_part(s.metrics().head(3)), "it has other rows"),
    "rows are of another source": (
        lambda s: s.forged_part(s.metrics().with_columns(source=pl.lit("train.log"))),
        "it has other rows",
    ),
    "a name is missing": (
        lambda s: s.forged_part(s.metrics().with_columns(raw_name=pl.lit(None, pl.String))),
        "it has other rows",
    ),
    "a class is not that of its value": (
        lambda s: s.forged_part(s.metrics().with_columns(value_class=pl.lit("finite"))),
        "it has other rows",
    ),
    "a row is of no source": (
        lambda s: s.forged_part(s.metrics().with_columns(source=pl.when(pl.col("seq") > 3).then("source"))),
        "it has other rows",
    ),
}


def assert_same(found: Run, wanted: Run) -> None:
    """Every table of the one is that of the other, so the verdict is, too."""
    for table, frame in tables(found).items():
        assert frame.equals(wanted.collect(table), null_equal=True), table


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_store_that_was_tampered_with_is_not_believed(sound: tuple[Store, Run], store: Store, name: str) -> None:
    tamper, says = TAMPERINGS[name]
    tamper(store)
    before = store.tree()
    found = ingest_run(store.run, store=store.place)
    assert_same(found, sound[1])
    said = [issue.message for issue in issues_of(found) if issue.code == disk.UNUSABLE]
    assert [says in message for message in said] == [True]
    mended = ingest_run(store.run, store=store.place)
    assert_same(mended, sound[1])
    assert [issue for issue in issues_of(mended) if issue.code == disk.UNUSABLE] == []
    assert store.tree() == before


def test_the_verdict_of_a_damaged_store_is_that_of_the_run(store: Store) -> None:
    wanted = triage(store.run)
    flipped(store)
    found = triage(store.run, store=store.place)
    assert (found.verdict, found.coverage) == (wanted.verdict, wanted.coverage)
    assert [f.rule for f in found.findings] == [f.rule for f in wanted.findings] != []


def test_a_home_that_is_a_link_or_a_file_is_set_aside(sound: tuple[Store, Run], store: Store) -> None:
    store.replaced(store.home, store.outside / "home")
    before = store.tree()
    assert_same(ingest_run(store.run, store=store.place), sound[1])
    assert store.tree() == before
    assert not store.home.is_symlink()
    shutil.rmtree(store.home)
    store.home.write_text("no folder")
    assert_same(ingest_run(store.run, store=store.place), sound[1])
    assert store.home.is_dir()


def test_old_links_are_removed_and_what_they_lead_to_is_not(store: Store) -> None:
    before = store.tree()
    names = (".building-x", ".stale-x", ".CURRENT-x", "gen-" + "0" * 32)
    for name in names:
        (store.home / name).symlink_to(store.outside)
        os.utime(store.home / name, (0, 0), follow_symlinks=False)
    ingest_run(store.run, store=store.place)
    assert [name for name in names if os.path.lexists(store.home / name)] == []
    assert store.tree() == before


def test_a_damaged_generation_gets_a_neighbour_and_stays(sound: tuple[Store, Run], store: Store) -> None:
    generations: list[str] = []
    for _ in range(3):
        generations.append(store.generation.name)
        flipped(store)
        assert_same(ingest_run(store.run, store=store.place), sound[1])
    assert len(set(generations)) == 3
    assert sorted(p.name for p in store.home.glob("gen-*")) == sorted({*generations, store.generation.name})


def test_a_place_that_cannot_be_written_to_is_a_usage_error(sound: tuple[Store, Run]) -> None:
    run = sound[0].run
    with pytest.raises(UsageError, match=r"the store .*: a part of the path is a file") as refused:
        ingest_run(run, store=run / "metrics.jsonl" / "x")
    assert "--store DIR" in refused.value.help
