"""Records written as a LevelDB log with zlib checksums, as `leveldb_log` reads it."""

from __future__ import annotations

import zlib

from forensics.io.records.leveldb_log import BLOCK_BYTES, CHUNK, CHUNK_BYTES, FIRST, FULL, LAST, MIDDLE


def frame(payloads: list[bytes], header: bytes, *, base: int = 0) -> bytes:
    """Write records as a log: for fixtures and tests; `base` is where the first block begins."""
    out = bytearray(header)
    for payload in payloads:
        rest, begun = payload, False
        while True:
            left = BLOCK_BYTES - (len(out) - base) % BLOCK_BYTES
            if left < CHUNK_BYTES:
                out += bytes(left)
                left = BLOCK_BYTES
            part, rest = rest[: left - CHUNK_BYTES], rest[left - CHUNK_BYTES :]
            kind = (MIDDLE if rest else LAST) if begun else (FIRST if rest else FULL)
            out += CHUNK.pack(zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            begun = True
            if not rest:
                break
    return bytes(out)
