"""Reading gives bounded blocks of whole lines, and says what it lost."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from forensics.errors import InputError, LimitExceeded
from forensics.io.limits import Limits
from forensics.io.reading import Block, Opened, open_source, opened_bytes, opened_stream
from forensics.model import Source

SMALL = Limits(block_bytes=64, line_bytes=32)
LINES = b"".join(b"step %d loss %d.5\n" % (n, n) for n in range(2000))


def read(data: bytes, limits: Limits = SMALL) -> tuple[list[Block], Opened]:
    opened = opened_bytes("a.log", data, limits)
    return list(opened.blocks()), opened


def text(blocks: list[Block]) -> bytes:
    return b"".join(block.data for block in blocks)


def codes(opened: Opened) -> list[str]:
    return [issue.code for issue in opened.problems()]


def balanced(opened: Opened) -> bool:
    account = opened.account()
    return account.read_bytes + account.skipped_bytes == opened.size_bytes and account.read_bytes >= 0


def put(folder: Path, data: bytes, name: str = "a.log") -> Source:
    (folder / name).write_bytes(data)
    return Source(name, len(data))


def test_blocks_end_at_a_newline_and_count_lines_from_one() -> None:
    blocks, opened = read(b"one\ntwo\n" * 30 + b"end")
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    assert len(blocks) > 2
    assert text(blocks) == b"one\ntwo\n" * 30 + b"end"
    assert [b.first_line for b in blocks] == [1 + text(blocks[:n]).count(b"\n") for n in range(len(blocks))]
    assert [b.offset for b in blocks] == [len(text(blocks[:n])) for n in range(len(blocks))]
    assert opened.account().skipped_bytes == 0
    assert opened.account().read_bytes == opened.size_bytes


def test_a_file_gives_the_same_blocks_as_its_bytes(tmp_path: Path) -> None:
    with open_source(tmp_path, put(tmp_path, LINES), SMALL) as opened:
        assert text(list(opened.blocks())) == LINES
        assert opened.head(4) == b"step"
        assert opened.tail(4) == LINES[-4:]
        assert opened.raw()[:] == LINES
        assert opened.text_head(6000) == LINES[:6000]


def test_an_empty_source_has_no_blocks() -> None:
    blocks, opened = read(b"")
    assert blocks == []
    assert opened.raw() == b""
    assert opened.text_head(10) == b""


def test_an_over_long_line_keeps_its_begin_and_its_end_and_states_the_loss() -> None:
    blocks, opened = read(b"a\n" + b"x" * 300 + b"\nb\n")
    assert text(blocks) == b"a\n" + b"x" * 32 + b"\nb\n"
    (issue,) = opened.problems()
    assert (issue.code, issue.line, issue.byte) == ("long-line", 2, 2)
    assert opened.account().skipped_bytes == 268
    assert blocks[-1].data == b"b\n"
    assert (blocks[-1].first_line, blocks[-1].offset) == (3, 303)


def test_many_over_long_lines_are_one_issue_with_a_count() -> None:
    _, opened = read((b"x" * 40 + b"\n") * 100)
    (issue,) = opened.problems()
    assert issue.count == 100
    assert opened.account().skipped_bytes == 800


def test_a_progress_bar_without_newlines_streams_and_stays_on_line_one() -> None:
    bar = b"".join(b"%3d%% done\r" % n for n in range(101))
    blocks, opened = read(bar)
    assert text(blocks) == bar
    assert max(len(block.data) for block in blocks) <= 96
    assert {block.first_line for block in blocks} == {1}
    assert codes(opened) == []


def test_zeros_pass_as_they_are() -> None:
    blocks, _ = read(b"a\0b\n\0\0\0\nc\n")
    assert text(blocks) == b"a\0b\n\0\0\0\nc\n"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_becomes_utf_8(codec: str) -> None:
    words = "größe 模型 loss 1.5\n" * 40
    blocks, opened = read(("\ufeff" + words).encode(codec), Limits(block_bytes=63, line_bytes=999))
    assert text(blocks).decode() == words
    assert opened.text_head(500) == words.encode()[:500]
    assert balanced(opened)


def test_damaged_utf_16_is_stated() -> None:
    _, opened = read(b"\xff\xfe" + b"\x00\xd8a\x00\n\x00")
    assert codes(opened) == ["utf-16"]


def test_a_byte_order_mark_is_not_text_but_counts_in_offsets() -> None:
    blocks, opened = read(b"\xef\xbb\xbfstep 1\n")
    assert (blocks[0].data, blocks[0].offset) == (b"step 1\n", 3)
    assert opened.text_head(4) == b"step"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed_files_of_several_members_are_one_stream(pack: object) -> None:
    packed = pack(LINES) + pack(LINES)
    blocks, opened = read(packed, Limits(block_bytes=1000))
    assert text(blocks) == LINES * 2
    assert codes(opened) == []
    assert opened.account().read_bytes == len(packed)
    assert opened.text_head(6) == b"step 0"
    assert opened.raw() == packed


@pytest.mark.parametrize(("pack", "code"), [(gzip.compress, "gzip-cut"), (zstandard.compress, "zstd-cut")])
def test_a_cut_compressed_file_gives_what_stands_before_the_cut(pack: object, code: str) -> None:
    packed = pack(LINES) + pack(LINES)
    blocks, opened = read(packed[:-10])
    assert text(blocks).startswith(LINES)
    assert codes(opened) == [code]
    assert balanced(opened)


def test_a_damaged_gzip_member_gives_what_stands_before_the_damage() -> None:
    packed = bytearray(gzip.compress(LINES))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    blocks, opened = read(bytes(packed))
    assert LINES.startswith(text(blocks)[: len(LINES) // 4])
    assert codes(opened) == ["gzip"]
    assert opened.account().skipped_bytes > 0
    assert balanced(opened)


def test_a_wrong_checksum_keeps_the_text_and_says_so() -> None:
    packed = bytearray(gzip.compress(LINES))
    packed[-6] ^= 1
    blocks, opened = read(bytes(packed))
    assert text(blocks) == LINES
    assert codes(opened) == ["gzip"]


def test_bytes_after_the_compressed_data_are_skipped_and_stated_but_padding_is_not() -> None:
    blocks, opened = read(gzip.compress(LINES) + b"junk")
    assert text(blocks) == LINES
    assert codes(opened) == ["trailing"]
    assert opened.account().skipped_bytes == 4
    blocks, opened = read(gzip.compress(LINES) + b"\0" * 512)
    assert (text(blocks), codes(opened)) == (LINES, [])


def test_expansion_is_bounded_by_bytes() -> None:
    limits = Limits(expanded_bytes=5000)
    blocks, opened = read(gzip.compress(LINES), limits)
    assert len(text(blocks)) <= 5000
    assert codes(opened) == ["expansion"]
    assert balanced(opened)


def test_expansion_is_bounded_by_ratio() -> None:
    bomb = zstandard.compress(b"\0" * (200 << 20))
    _, opened = read(bomb, Limits())
    assert "expansion" in codes(opened)
    assert balanced(opened)


def test_a_pass_that_stops_early_is_accounted_for() -> None:
    opened = opened_bytes("a.log", LINES, SMALL)
    next(opened.blocks())
    assert balanced(opened)
    assert opened.account().reason == "not read to the end"


def test_a_hole_is_passed_over_and_what_follows_is_read(tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        file.truncate(1 << 34)
        file.seek(1 << 34)
        file.write(b"after\n")
    with open_source(tmp_path, Source("a.log", 0)) as opened:
        blocks = list(opened.blocks())
        if blocks[-1].offset != 1 << 34:
            pytest.skip("this file system has no holes")
        assert blocks[-1].data == b"after\n"
        assert codes(opened) == ["hole"]
        assert opened.account().read_bytes == 6
        assert balanced(opened)


def test_a_file_that_shrinks_while_read_is_stated(tmp_path: Path) -> None:
    with open_source(tmp_path, put(tmp_path, LINES), SMALL) as opened:
        stream = opened.blocks()
        next(stream)
        os.truncate(tmp_path / "a.log", 100)
        list(stream)
        assert codes(opened) == ["shrank"]
        assert balanced(opened)


def test_a_file_that_grows_while_read_is_read_to_its_first_size(tmp_path: Path) -> None:
    with open_source(tmp_path, put(tmp_path, LINES), SMALL) as opened:
        stream = opened.blocks()
        first = next(stream)
        with (tmp_path / "a.log").open("ab") as file:
            file.write(LINES)
        assert text([first, *stream]) == LINES


def test_a_disk_that_refuses_is_an_issue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pread = os.pread

    def failing(fd: int, count: int, offset: int) -> bytes:
        if offset > 500:
            raise OSError(5, "Input/output error")
        return pread(fd, count, offset)

    with open_source(tmp_path, put(tmp_path, LINES), SMALL) as opened:
        monkeypatch.setattr(os, "pread", failing)
        assert LINES.startswith(text(list(opened.blocks())))
        assert codes(opened) == ["read-error"]
        assert balanced(opened)
        with pytest.raises(InputError):
            opened.tail(10)


@pytest.mark.parametrize("path", ["/etc/hostname", "../a.log", "sub/../../a.log", "a\0b", "link.log", "folder/b.log"])
def test_a_path_that_leads_out_of_the_run_is_refused(tmp_path: Path, path: str) -> None:
    put(tmp_path, b"secret\n")
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    put(elsewhere, b"secret\n", "b.log")
    (run / "link.log").symlink_to(tmp_path / "a.log")
    (run / "folder").symlink_to(elsewhere)
    with pytest.raises(InputError), open_source(run, Source(path, 0)):
        pass


def test_a_pipe_in_the_run_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(InputError, match="fifo"), open_source(tmp_path, Source("pipe.log", 0)):
        pass


def test_a_single_file_is_opened_by_the_name_the_user_gave(tmp_path: Path) -> None:
    source = put(tmp_path, LINES)
    (tmp_path / "link").symlink_to(tmp_path / "a.log")
    with open_source(tmp_path / "link", source) as opened:
        assert opened.head(4) == b"step"


def test_a_view_that_is_still_held_does_not_hinder_closing(tmp_path: Path) -> None:
    with open_source(tmp_path, put(tmp_path, LINES)) as opened:
        view = memoryview(opened.raw())
    assert bytes(view[:4]) == b"step"


def test_reading_leaves_access_times_alone_where_the_system_allows(tmp_path: Path) -> None:
    source = put(tmp_path, LINES)
    os.utime(tmp_path / "a.log", ns=(1, 2))
    with open_source(tmp_path, source) as opened:
        list(opened.blocks())
    found = (tmp_path / "a.log").stat()
    assert found.st_mtime_ns == 2
    if hasattr(os, "O_NOATIME"):
        assert found.st_atime_ns == 1


def test_a_pipe_is_read_like_a_file_and_bounded() -> None:
    with opened_stream("-", io.BytesIO(gzip.compress(LINES))) as opened:
        assert text(list(opened.blocks())) == LINES
        assert opened.source.path == "-"
    with pytest.raises(LimitExceeded), opened_stream("-", io.BytesIO(LINES), Limits(expanded_bytes=10)):
        pass


GROWTH = """
import resource, sys
from pathlib import Path
from forensics.io.reading import open_source
from forensics.model import Source
import numpy
def peak():
    return int(next(l.split()[1] for l in open("/proc/self/status") if l.startswith("VmHWM")))
before = peak()
with open_source(Path(sys.argv[1]), Source(sys.argv[2], 0)) as opened:
    for block in opened.blocks():
        pass
    account = opened.account()
assert account.read_bytes + account.skipped_bytes == opened.size_bytes
print((peak() - before) >> 10)
"""


def growth_mib(folder: Path, name: str) -> int:
    done = subprocess.run([sys.executable, "-c", GROWTH, folder, name], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory of a process")
def test_a_line_of_200_mb_costs_less_than_150_mb_of_memory(tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        for _ in range(200):
            file.write(b"x" * 1_000_000)
    assert growth_mib(tmp_path, "a.log") < 150


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory of a process")
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_bomb_costs_less_than_300_mb_of_memory(tmp_path: Path, pack: object) -> None:
    put(tmp_path, pack(b"\n" * (300 << 20)), "bomb")
    assert growth_mib(tmp_path, "bomb") < 300
