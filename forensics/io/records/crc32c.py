"""CRC-32C (Castagnoli) of one buffer or of many slices at once, with numpy and nothing else.

A byte-wise loop in Python checks about 8 MB/s, and no C library for it is among our dependencies. So the remainders of
many slices are computed side by side: slices are laid out as rows, right-aligned, and each pair of columns is one table
look-up for all rows. Leading zeros leave a zero register unchanged, so rows of different lengths share one matrix; the
initial all-ones register is the same as inverting the first four bytes. A long slice is cut into equal lanes whose
remainders are joined by the operator "append N zero bytes", which is linear.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8
_SHORT_BYTES = 8_192
_LONG_BYTES = 16_384
_MATRIX_BYTES = 1 << 20
_MARGIN_BYTES = _LONG_BYTES
_FEW_ROWS = 32


@cache
def _byte_table() -> tuple[int, ...]:
    table: list[int] = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ _POLYNOMIAL if crc & 1 else crc >> 1
        table.append(crc)
    return tuple(table)


@cache
def _pair_table() -> NDArray[np.uint32]:
    single = np.array(_byte_table(), np.uint32)
    pair = np.arange(65_536, dtype=np.uint32)
    once = single[pair & 255] ^ (pair >> 8)
    return (single[once & 255] ^ (once >> 8)).astype(np.uint32)


def _serial(data: bytes, crc: int) -> int:
    table = _byte_table()
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc


def _remainders(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Remainder of each row from a zero register; the row length is even."""
    table = _pair_table()
    pairs = np.ascontiguousarray(rows.view("<u2").T)
    crc = np.zeros(len(rows), np.uint32)
    for column in pairs:
        crc = table[(crc ^ column) & np.uint32(0xFFFF)] ^ (crc >> np.uint32(16))
    return crc


@cache
def _zeros_operator(count: int) -> tuple[tuple[int, ...], ...]:
    """Four tables (one per byte of the register) for appending `count` zero bytes."""
    basis = [1 << bit for bit in range(32)]
    step = [_serial(b"\0", crc) for crc in basis]
    result = basis
    while count:
        if count & 1:
            result = [_apply(step, crc) for crc in result]
        step = [_apply(step, crc) for crc in step]
        count >>= 1
    return tuple(tuple(_apply(result[8 * k : 8 * k + 8], value) for value in range(256)) for k in range(4))


def _apply(columns: list[int], crc: int) -> int:
    out = 0
    for bit, column in enumerate(columns):
        if crc >> bit & 1:
            out ^= column
    return out


def _long(data: bytes) -> int:
    """Remainder of a long buffer whose first four bytes are already inverted."""
    lane = max(512, 1 << len(data).bit_length() // 2)
    lanes, rest = divmod(len(data), lane)
    first, second, third, fourth = _zeros_operator(lane)
    crc = _serial(data[:rest], 0)
    for part in _remainders(np.frombuffer(data, np.uint8, offset=rest).reshape(lanes, lane)).tolist():
        crc = first[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ fourth[crc >> 24] ^ part
    return crc


#: a payload whose numbers are further from its end is checked whole
AFFINE_BYTES = 1_024
PIECE_BITS = 11


@cache
def _bits_by_distance() -> tuple[tuple[int, ...], ...]:
    """For a byte with d bytes behind it, what each of its eight bits adds to the remainder."""
    rows = [tuple(_serial(b"\0", 1 << bit) for bit in range(8))]
    while len(rows) < AFFINE_BYTES:
        rows.append(tuple(_serial(b"\0", bit) for bit in rows[-1]))
    return tuple(rows)


@lru_cache(maxsize=2_048)
def piece_table(behind: int, shift: int) -> NDArray[np.uint32]:
    """What `PIECE_BITS` bits of a little-endian word, from bit `shift` on, add to the remainder of the whole slice.

    `behind` bytes follow the first byte of the word. The checksum is affine: for two slices of one length that differ
    in some words, the checksums differ by the XOR of these tables at the XOR of the words.
    """
    bits = _bits_by_distance()
    table = np.zeros(1 << PIECE_BITS, np.uint32)
    for k in range(min(PIECE_BITS, 64 - shift)):
        byte, bit = divmod(shift + k, 8)
        added = bits[behind - byte][bit] if byte <= behind else 0
        table[1 << k : 2 << k] = table[: 1 << k] ^ np.uint32(added)
    return table


def unmasked(stored: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The checksums whose masked form record files store."""
    turned = stored - np.uint32(_MASK_DELTA)
    return turned >> np.uint32(17) | turned << np.uint32(15)


def crc32c(data: bytes) -> int:
    """CRC-32C of `data` (RFC 3720, appendix B.4: 32 bytes of zeros give 0x8A9136AA)."""
    if len(data) <= _SHORT_BYTES:
        return _serial(data, _ONES) ^ _ONES
    return _long((int.from_bytes(data[:4], "little") ^ _ONES).to_bytes(4, "little") + data[4:]) ^ _ONES


def masked(crc: int) -> int:
    """The checksum as record files store it: rotated right by 15 bits, plus a constant, modulo 2**32."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ONES


def masked_many(data: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Masked checksums of the slices `data[start:start + length]`, in order.

    Memory beyond the result stays within a copy of `data` and a few MiB, whatever the lengths are.
    """
    out = np.zeros(len(starts), np.uint32)
    order = np.argsort(lengths, kind="stable")
    array = np.frombuffer(bytes(_MARGIN_BYTES) + data, np.uint8)
    while len(order):
        take = _batch(lengths[order])
        chosen, order = order[:take], order[take:]
        if take < _FEW_ROWS or lengths[chosen[0]] < 4:
            for i in chosen.tolist():
                start = int(starts[i])
                out[i] = masked(crc32c(data[start : start + int(lengths[i])]))
        else:
            crc = _remainders(_rows(array, starts[chosen], lengths[chosen])) ^ np.uint32(_ONES)
            out[chosen] = (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(_MASK_DELTA)
    return out


def _batch(lengths: NDArray[np.int64]) -> int:
    """How many of these rising lengths share a matrix: not too much padding, and not more than the memory bound."""
    shortest = int(lengths[0])
    if shortest > _LONG_BYTES:
        return 1
    widest = 3 if shortest < 4 else min(max(64, 2 * shortest), _LONG_BYTES)
    similar = int(np.searchsorted(lengths, widest, side="right"))
    return max(1, min(similar, _MATRIX_BYTES // (widest + 2)))


def _rows(array: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Slices as right-aligned rows of even width, zeros before them, their first four bytes inverted.

    `array` has `_MARGIN_BYTES` bytes before the data that `starts` counts from.
    """
    width = int(lengths.max())
    width += width & 1
    pads = width - lengths
    windows = np.lib.stride_tricks.sliding_window_view(array, width)
    rows = windows[starts + (_MARGIN_BYTES - pads)]
    if most := int(pads.max()):
        rows[:, :most][np.arange(most) < pads[:, None]] = 0
    rows[np.arange(len(starts))[:, None], pads[:, None] + np.arange(4)] ^= np.uint8(255)
    return rows
