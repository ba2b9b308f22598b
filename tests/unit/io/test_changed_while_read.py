"""A file that is cut, removed, replaced, that grows or is full of holes while it is read costs itself, and no other.

Each reader of raw bytes is tried in a process of its own, as a mapped file that is cut would kill it by a signal.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import pytest

from forensics import registry
from forensics.cli._answer import lost
from forensics.errors import InputError, PlaceError
from forensics.formats.snapshot import _stream as snap_stream
from forensics.io import disk as bytes_on_disk
from forensics.io import reading as reading_bytes
from forensics.io.limits import DEFAULT
from forensics.io.reading import Opened, open_source, opened_bytes
from forensics.model import Coverage, FileCoverage, FileStatus, Issue, Source
from forensics.pipeline import ingest_run, report_of
from forensics.store.fill import fill, lasting
from forensics.store.gather import issues_of, stored_coverage
from forensics.values import replace

FIXTURES = Path(__file__).parents[3] / "fixtures"
DATA = bytes(range(256)) * 1024
GIB = 1 << 30
CUT = """
import os, sys
from pathlib import Path
from forensics import pipeline
from forensics.io import disk
path, = [p for p in Path(sys.argv[1]).rglob("*") if p.name == sys.argv[2]]
real = disk.OpenFile.copied
def cut(self):
    held = real(self)
    os.truncate(path, 10)
    return held
disk.OpenFile.copied = cut
run = pipeline.ingest_run(Path(sys.argv[1]))
print(run.collect("sources")["status"].to_list(), path.stat().st_size)
"""
#: Every kind of file whose reader asks for its raw bytes.
RAW = (
    "tfevents/ok-*/**/*tfevents*",
    "wandb_run/ok-*/**/*.wandb",
    "memory_snapshot/ok-*/**/*.pickle",
    "mlflow_sqlite/crash-nan/*.db",
    "trackio_sqlite/crash-nan/*.db",
)


def fixture_file(pattern: str) -> Path:
    return min(path for path in FIXTURES.glob(pattern) if path.is_file())


@pytest.mark.parametrize("pattern", RAW)
def test_a_file_that_is_cut_once_it_is_held_is_read_to_its_end_and_kills_nothing(tmp_path: Path, pattern: str) -> None:
    source = fixture_file(pattern)
    (tmp_path / source.name).write_bytes(source.read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(tmp_path), source.name], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "['read'] 10\n"), done.stderr


def opened_file(folder: Path, data: bytes = DATA) -> Any:
    (folder / "a.bin").write_bytes(data)
    return open_source(folder, Source("a.bin", len(data)))


def test_a_copy_is_not_changed_by_what_becomes_of_the_file(tmp_path: Path) -> None:
    with opened_file(tmp_path) as opened:
        held = opened.raw()
        (tmp_path / "a.bin").write_bytes(b"other" * 100)
        os.truncate(tmp_path / "a.bin", 0)
        assert held[:] == DATA
        assert opened.lost is None


def test_a_file_above_the_bound_is_held_outside_of_memory_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytes_on_disk, "_HELD_BYTES", len(DATA) - 1)
    made: list[object] = []
    temporary = bytes_on_disk.tempfile.TemporaryFile
    monkeypatch.setattr(bytes_on_disk.tempfile, "TemporaryFile", lambda: made.append(temporary()) or made[-1])
    with opened_file(tmp_path) as opened:
        assert opened.raw()[:] == DATA
        os.truncate(tmp_path / "a.bin", 0)
        assert opened.raw()[-4:] == DATA[-4:]
    assert len(made) == 1


def resident_bytes() -> int:
    """Memory that files without a name take of this process."""
    found, named = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            named = line.endswith("(deleted)")
        elif named and line.startswith("Rss:"):
            found += int(line.split()[1]) << 10
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells of mappings")
def test_a_copy_with_a_file_behind_takes_the_memory_of_what_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytes_on_disk, "_HELD_BYTES", len(DATA) - 1)
    monkeypatch.setattr(reading_bytes, "_LET_GO_BYTES", len(DATA) // 4)
    before = resident_bytes()
    with opened_file(tmp_path) as opened:
        held = opened.raw()
        assert resident_bytes() == before, "copying leaves nothing behind"
        assert held[:] == DATA
        assert resident_bytes() - before >= len(DATA)
        opened.passed(len(DATA) // 8)
        assert resident_bytes() - before >= len(DATA), "too little to ask for"
        opened.passed(len(DATA))
        assert resident_bytes() - before < PAGESIZE * 2
        assert held[:] == DATA, "what went comes back from the file"


def test_a_copy_in_memory_keeps_what_was_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_bytes, "_LET_GO_BYTES", 1)
    with opened_file(tmp_path) as opened:
        held = opened.raw()
        opened.passed(len(DATA))
        assert held[:] == DATA


def test_no_space_for_a_copy_costs_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytes_on_disk, "_HELD_BYTES", 10)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with opened_file(tmp_path) as opened, pytest.raises(InputError, match=r"262,144 bytes cannot be held: No space"):
        opened.raw()


@pytest.mark.parametrize("left", [0, 1, 100_000, len(DATA) - 1])
@pytest.mark.parametrize("way", ["raw", "span", "blocks", "chunks"])
def test_what_is_missing_of_a_file_that_was_cut_is_stated_however_it_is_read(
    tmp_path: Path, left: int, way: str
) -> None:
    with opened_file(tmp_path) as opened:
        os.truncate(tmp_path / "a.bin", left)
        if way == "raw":
            assert opened.raw()[:] == DATA[:left]
        elif way == "span":
            assert opened.span(0, len(DATA)) == DATA[:left]
        else:
            assert b"".join(_read(opened, way)) == DATA[:left]
        assert opened.lost is not None
        assert (opened.lost.code, opened.lost.byte) == ("shrank", left)


def _read(opened: Opened, way: str) -> Iterator[bytes]:
    return opened.chunks(4096) if way == "chunks" else (block.data for block in opened.blocks())


def test_reading_behind_the_size_is_no_loss(tmp_path: Path) -> None:
    with opened_file(tmp_path) as opened:
        assert opened.span(len(DATA) - 2, 100) == DATA[-2:]
        assert opened.span(len(DATA) + 5, 100) == b""
        assert opened.lost is None


def test_a_file_that_grows_or_is_replaced_is_the_file_that_was_opened(tmp_path: Path) -> None:
    with opened_file(tmp_path) as opened:
        with (tmp_path / "a.bin").open("ab") as file:
            file.write(b"more")
        (tmp_path / "other").write_bytes(b"new")
        (tmp_path / "other").replace(tmp_path / "a.bin")
        assert opened.raw()[:] == DATA
        assert opened.lost is None


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_disk_that_fails_ends_a_copy_where_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(bytes_on_disk, "_COPY_BYTES", 1000)
    preadv = os.preadv

    def failing(fd: int, views: list[memoryview], offset: int) -> int:
        if offset >= 5000:
            raise OSError(number, os.strerror(number))
        return preadv(fd, views, offset)

    with opened_file(tmp_path) as opened:
        monkeypatch.setattr(os, "preadv", failing)
        assert opened.raw()[:] == DATA[:5000]
        assert opened.lost is not None
        assert (opened.lost.code, opened.lost.byte) == ("read-error", 5000)


def test_a_reader_that_gives_pages_back_never_looks_at_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    path = fixture_file("memory_snapshot/ok-leak-2.12/*.pickle")
    assert path.stat().st_size > 4 * PAGESIZE
    given: list[int] = []
    give_back = snap_stream._give_back
    monkeypatch.setattr(snap_stream, "_DROP_BYTES", 1)
    monkeypatch.setattr(snap_stream, "WINDOW", 2_000)
    monkeypatch.setattr(snap_stream, "_give_back", lambda m, read: given.append(m.p) or give_back(m, read))
    source = Source(path.name, path.stat().st_size)
    readers = [one for one in registry.load("ingesters").ingesters if one.name == "memory_snapshot"]
    of_file, file = fill(open_source(path.parent, source), source, readers, DEFAULT)
    assert len(given) > 1
    of_bytes, same = fill(nullcontext(opened_bytes(path.name, path.read_bytes())), source, readers, DEFAULT)
    assert file == same
    assert {t: f.to_dicts() for t, f in of_file.frames().items()} == {
        t: f.to_dicts() for t, f in of_bytes.frames().items()
    }


def sparse(path: Path, head: bytes, size: int) -> Path:
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
    if path.stat().st_blocks * 512 > size // 2:
        pytest.skip("this file system has no holes")
    return path


@pytest.mark.parametrize("pattern", [*RAW, "text_log/ok-*/**/*.log", "chrome_trace/ok-*/**/*.json"])
def test_fifty_gigabytes_of_holes_cost_nothing_and_are_stated(tmp_path: Path, pattern: str) -> None:
    source = fixture_file(pattern)
    whole = source.read_bytes()
    path = sparse(tmp_path / source.name, whole, 50 * GIB)
    before = os.times()
    run = ingest_run(tmp_path)
    after = os.times()
    (file,) = stored_coverage(run).files
    assert file.size_bytes == 50 * GIB
    assert file.read_bytes <= path.stat().st_blocks * 512 + DEFAULT.block_bytes + DEFAULT.line_bytes
    assert file.status is not FileStatus.READ
    assert "hole" in {issue.code for issue in issues_of(run)}
    assert "never written" in file.reason
    assert after.user - before.user + after.system - before.system < 20  # looking at 50 GB takes a minute or more
    assert held_mib() < 2048


def held_mib() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmRSS"))) >> 10


def test_a_small_hole_is_bytes_of_the_file_and_a_large_one_ends_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = 1 << 16
    path = tmp_path / "a.bin"
    with path.open("wb") as file:
        file.write(b"a" * block)
        file.seek(3 * block)
        file.write(b"b" * block)
    if path.stat().st_blocks * 512 > 3 * block:
        pytest.skip("this file system has no holes")
    data = b"a" * block + bytes(2 * block) + b"b" * block
    for bound, kept, code in ((2 * block + 1, data, None), (2 * block, data[:block], "hole")):
        monkeypatch.setattr(bytes_on_disk, "_HOLE_BYTES", bound)
        with open_source(tmp_path, Source("a.bin", 4 * block)) as opened:
            assert opened.raw()[:] == kept
            assert (opened.lost.code if opened.lost else None) == code


READER = registry.load("ingesters").ingesters[0]


def reading(read: Callable[..., None], folder: Path, data: bytes = DATA) -> tuple[FileCoverage, list[Issue]]:
    """Fill a sink from one file by one reader that takes everything."""

    (folder / "a.bin").write_bytes(data)
    sniff = replace(READER.sniff, glob=("*",), magic=(), path=(), fallback=False)
    one = replace(READER, name="own", sniff=sniff, read=read)
    source = Source("a.bin", len(data))
    sink, file = fill(open_source(folder, source), source, [one], DEFAULT)
    return file, sink.issues


def test_a_reader_that_accounts_for_bytes_that_were_not_there_does_not_have_them_counted(tmp_path: Path) -> None:
    def read(opened: Opened, out: Any, limits: Any) -> None:
        assert limits is DEFAULT
        os.truncate(tmp_path / "a.bin", 1000)
        opened.raw()
        out.account(read_bytes=opened.size_bytes, records=1)

    file, issues = reading(read, tmp_path)
    assert (file.status, file.read_bytes, file.skipped_bytes) == (FileStatus.PARTIAL, 1000, len(DATA) - 1000)
    assert file.reason == "the file became shorter while it was read"
    assert [(issue.code, issue.byte) for issue in issues] == [("shrank", 1000)]
    assert lost(Coverage((file,)))
    assert not lasting(issues)


def test_a_file_that_grew_since_it_was_found_counts_with_the_size_it_was_opened_with(tmp_path: Path) -> None:
    def read(opened: Opened, out: Any, limits: Any) -> None:
        out.account(read_bytes=len(opened.raw()), records=limits.files)

    (tmp_path / "a.bin").write_bytes(DATA)
    one = replace(READER, read=read, sniff=replace(READER.sniff, glob=("*",)))
    source = Source("a.bin", 10)
    _, file = fill(open_source(tmp_path, source), source, [one], DEFAULT)
    assert (file.status, file.size_bytes, file.read_bytes) == (FileStatus.READ, len(DATA), len(DATA))


def test_a_system_out_of_open_files_is_no_fault_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def out(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    (tmp_path / "a.bin").write_bytes(DATA)
    monkeypatch.setattr(os, "open", out)
    source = Source("a.bin", 10)
    with pytest.raises(PlaceError, match="no more files"):
        fill(open_source(tmp_path, source), source, [READER], DEFAULT)


def test_the_other_files_of_a_run_are_judged_as_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"step": {n}, "loss": {"NaN" if n > 50 else 4 - n / 50}}}\n' for n in range(1, 81))
    (tmp_path / "metrics.jsonl").write_text(rows, encoding="utf-8")
    alone = report_of(ingest_run(tmp_path))
    for name in ("a.log", "b.log", "run-x.wandb", "events.out.tfevents.1.host"):
        (tmp_path / name).write_bytes(b"step 1 loss 2\n" * 1000)
    real = os.pread

    def failing(fd: int, count: int, offset: int) -> bytes:
        if Path(f"/proc/self/fd/{fd}").readlink().name != "metrics.jsonl":
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, count, offset)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs the names of open files")
    monkeypatch.setattr(os, "pread", failing)
    report = report_of(ingest_run(tmp_path))
    assert report.verdict == alone.verdict
    assert len(report.coverage.lost) == 4
