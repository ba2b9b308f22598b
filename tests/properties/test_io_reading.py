"""Properties of reading that hold for every input."""

from __future__ import annotations

import gzip
import re
import zlib

import zstandard
from hypothesis import given
from hypothesis import strategies as st

from forensics.io.limits import Limits
from forensics.io.reading import Block, Opened, opened_bytes

TEXTS = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"xyz ", b"\0", b"\xff", "é".encode(), b"q" * 40]), max_size=120)
LIMITS = st.builds(Limits, block_bytes=st.integers(1, 50), line_bytes=st.integers(1, 60))
WIDE = Limits(block_bytes=37, line_bytes=10_000)


def read(data: bytes, limits: Limits) -> tuple[list[Block], Opened]:
    opened = opened_bytes("x", data, limits)
    return list(opened.blocks()), opened


def joined(blocks: list[Block]) -> bytes:
    return b"".join(block.data for block in blocks)


def plain(data: bytes) -> bytes:
    """Bytes that are neither compressed nor marked with a byte-order mark."""
    return b"." + data


@given(st.binary(max_size=600))
def test_blocks_put_together_are_the_input(data: bytes) -> None:
    blocks, opened = read(plain(data), WIDE)
    assert joined(blocks) == plain(data)
    assert opened.account().read_bytes == len(plain(data))


@given(TEXTS, LIMITS)
def test_every_block_stands_where_it_says(parts: list[bytes], limits: Limits) -> None:
    data = plain(b"".join(parts))
    for block in read(data, limits)[0]:
        body = block.data[: limits.line_bytes] if len(block.data) <= limits.line_bytes else block.data[:1]
        whole = data[block.offset : block.offset + len(block.data)]
        assert whole.startswith(body[:-1])
        assert block.first_line == 1 + data.count(b"\n", 0, block.offset)


@given(TEXTS, LIMITS)
def test_lines_are_those_of_the_input_cut_to_the_limit(parts: list[bytes], limits: Limits) -> None:
    data = plain(b"".join(parts))
    blocks, opened = read(data, limits)
    expected = re.sub(rb"[^\r\n]+", lambda m: m[0][: limits.line_bytes], data)
    assert joined(blocks) == expected
    assert opened.account().skipped_bytes == len(data) - len(expected)
    assert opened.account().read_bytes == len(expected)


@given(TEXTS, LIMITS)
def test_blocks_end_at_line_ends_and_are_bounded(parts: list[bytes], limits: Limits) -> None:
    blocks, _ = read(plain(b"".join(parts)), limits)
    assert all(block.data.endswith((b"\n", b"\r")) for block in blocks[:-1])
    assert all(len(block.data) <= limits.block_bytes + limits.line_bytes + 1 for block in blocks)


@given(TEXTS, LIMITS, st.sampled_from([gzip.compress, zstandard.compress]))
def test_a_compressed_file_reads_as_its_content(parts: list[bytes], limits: Limits, pack: object) -> None:
    data = plain(b"".join(parts))
    assert joined(read(pack(data), limits)[0]) == joined(read(data, limits)[0])


@given(st.lists(st.binary(max_size=80), min_size=1, max_size=4), st.data())
def test_a_cut_gzip_file_never_loses_what_stands_before_the_cut(members: list[bytes], data: st.DataObject) -> None:
    packed = [gzip.compress(plain(member) + b"\n") for member in members]
    whole = b"".join(plain(member) + b"\n" for member in members)
    cut = data.draw(st.integers(3, sum(map(len, packed))))
    blocks, opened = read(b"".join(packed)[:cut], WIDE)
    complete, at = b"", 0
    for member, size in zip(members, map(len, packed), strict=True):
        at += size
        if at <= cut:
            complete += plain(member) + b"\n"
    assert whole.startswith(joined(blocks))
    assert joined(blocks).startswith(complete)
    assert opened.account().read_bytes + opened.account().skipped_bytes == cut


@given(st.integers(0, 2000))
def test_a_longer_prefix_of_a_gzip_file_never_gives_less(cut: int) -> None:
    packed = gzip.compress(b"".join(b"step %d loss %d\n" % (n, n * n) for n in range(400)), mtime=0)
    shorter, longer = (zlib.decompressobj(31).decompress(packed[:c]) for c in (cut, cut + 7))
    assert joined(read(packed[:cut], WIDE)[0]) == (shorter if cut > 2 else packed[:cut])
    assert longer.startswith(shorter)


@given(st.binary(max_size=300), st.sampled_from([gzip.compress, zstandard.compress]), st.integers(0, 10**6))
def test_a_flipped_byte_never_ends_in_an_exception_or_a_lost_account(data: bytes, pack: object, place: int) -> None:
    packed = bytearray(pack(data))
    packed[place % len(packed)] ^= 0x5A
    _, opened = read(bytes(packed), Limits(block_bytes=16, line_bytes=8, expanded_bytes=10_000))
    account = opened.account()
    assert account.read_bytes + account.skipped_bytes == len(packed)
    assert account.read_bytes >= 0


@given(st.text(st.characters(codec="utf-16", exclude_characters="\r"), max_size=200), st.sampled_from(["le", "be"]))
def test_utf_16_reads_as_its_utf_8(words: str, order: str) -> None:
    blocks, _ = read(("\ufeff" + words).encode(f"utf-16-{order}"), WIDE)
    assert joined(blocks) == words.encode()


@given(st.binary(max_size=400), st.integers(0, 500))
def test_the_head_is_the_begin_of_the_blocks(data: bytes, size: int) -> None:
    for packed in (plain(data), gzip.compress(plain(data))):
        opened = opened_bytes("x", packed, WIDE)
        assert opened.text_head(size) == joined(list(opened.blocks()))[:size]
