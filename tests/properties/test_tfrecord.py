"""Record framing: no byte unaccounted, no record lost that was not hit, and nothing raised, whatever the bytes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.io.limits import DEFAULT
from forensics.io.records.tfrecord import Damage, Record, frame, has_header, read
from forensics.values import replace

PAYLOADS = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=40)


def sound(data: bytes, **options: int) -> list[tuple[int, bytes]]:
    return [(item.byte, item.payload) for item in read(data, **options) if isinstance(item, Record)]


def is_covered(data: bytes) -> bool:
    at = 0
    for item in read(data):
        if item.byte != at:
            return False
        at += len(item.payload) + 16 if isinstance(item, Record) else item.size_bytes
    return at == len(data)


@settings(deadline=None)  # a busy machine is no failure
@given(PAYLOADS, st.sampled_from([64, 300, 4096, 4 << 20]))
def test_what_was_framed_is_read_back_whatever_the_window(payloads: list[bytes], window_bytes: int) -> None:
    data = b"".join(map(frame, payloads))
    assert [payload for _, payload in sound(data, window_bytes=window_bytes)] == payloads
    assert [item.index for item in read(data)] == list(range(len(payloads)))


@settings(deadline=None)  # a busy machine is no failure
@given(PAYLOADS, st.data())
def test_one_flipped_byte_costs_at_most_one_record(payloads: list[bytes], draw: st.DataObject) -> None:
    data = bytearray(b"".join(map(frame, payloads)))
    whole = sound(bytes(data))
    position = draw.draw(st.integers(0, len(data) - 1))
    data[position] ^= draw.draw(st.integers(1, 255))
    left = sound(bytes(data))
    hit = next(i for i, (byte, payload) in enumerate(whole) if byte <= position < byte + len(payload) + 16)
    assert [r for r in left if r in whole] == left
    assert set(whole) - set(left) <= {whole[hit]}
    assert is_covered(bytes(data))


@settings(deadline=None)  # a busy machine is no failure
@given(PAYLOADS, st.data())
def test_a_cut_anywhere_keeps_every_record_before_it(payloads: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(map(frame, payloads))
    cut = draw.draw(st.integers(0, len(data)))
    kept = [r for r in sound(data) if r[0] + len(r[1]) + 16 <= cut]
    assert sound(data[:cut]) == kept
    ends = {0} | {byte + len(payload) + 16 for byte, payload in kept}
    tail = [item for item in read(data[:cut]) if isinstance(item, Damage)]
    assert [item.code for item in tail] == ([] if cut in ends else ["truncated"])


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=3000))
def test_any_bytes_are_covered_and_never_raise(data: bytes) -> None:
    assert is_covered(data)


@settings(deadline=None)  # a busy machine is no failure
@given(PAYLOADS, st.binary(max_size=200), PAYLOADS)
def test_what_follows_foreign_bytes_is_found_again(first: list[bytes], junk: bytes, second: list[bytes]) -> None:
    data = b"".join(map(frame, first)) + junk + b"".join(map(frame, second))
    found = [payload for _, payload in sound(data)]
    assert found[: len(first)] == first
    assert found[-len(second) :] == second


def test_a_record_cut_in_the_middle_of_a_file_does_not_swallow_those_behind_it() -> None:
    data = frame(b"a" * 50) + frame(b"b" * 500)[:200] + frame(b"c" * 50) * 20
    assert [payload[:1] for _, payload in sound(data)] == [b"a"] + [b"c"] * 20


def test_a_hit_on_the_checksum_of_a_length_loses_nothing() -> None:
    data = bytearray(frame(b"a" * 20) + frame(b"b" * 20))
    data[9] ^= 1
    assert [payload[:1] for _, payload in sound(bytes(data))] == [b"a", b"b"]


def test_a_record_above_the_limit_is_passed_over_and_named() -> None:
    data = frame(b"x") + frame(b"y" * 900) + frame(b"z")
    items = list(read(data, replace(DEFAULT, record_bytes=100)))
    assert [getattr(item, "code", "sound") for item in items] == ["sound", "record-too-long", "sound"]


def test_a_header_is_known_by_its_checksum() -> None:
    assert has_header(frame(b"abc"))
    assert not has_header(frame(b"abc")[:11])
    assert not has_header(bytes(64))


@pytest.mark.parametrize(
    "data",
    [
        bytes(1 << 20),
        frame(b"")[:12] * 20_000,
        (frame(b"x" * 20) + b"\xff" * 37) * 3_000,
        (frame(b"x" * 20)[:12] + b"\1" * 29) * 5_000,
    ],
    ids=["zeros", "headers", "every-second-record", "bad-payloads"],
)
def test_a_file_of_nothing_but_damage_takes_no_longer_than_its_size(data: bytes) -> None:
    began = time.process_time()
    assert is_covered(data)
    assert time.process_time() - began < 5
