"""An object of a bucket as bytes that are read by position, eight megabytes at a time."""

from __future__ import annotations

import errno
import mmap

from msgspec import Struct

from forensics.io.disk import Lost, room
from forensics.io.places.client import BLOCK_BYTES, Client, Object, Refused


class StoredObject(Struct):
    """An object of a bucket, read by ranges, as it was when it was opened: a new one in its place is a stated loss."""

    client: Client
    found: Object
    lost: Lost | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes it had."""
        return self.found.size_bytes

    @property
    def content_id(self) -> str:
        """What the service says that only these bytes have."""
        return self.found.tag

    def pread(self, count: int, offset: int) -> bytes:
        """Give bytes of the blocks that hold them."""
        end = min(offset + count, self.size_bytes)
        parts: list[bytes] = []
        while offset < end:
            index, at = divmod(offset, BLOCK_BYTES)
            parts.append(self._block(index)[at : at + end - offset])
            offset += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def next_data(self, offset: int) -> int:
        """Objects have no holes."""
        return offset

    def copied(self) -> mmap.mmap | bytes:
        """Copy the object into memory of our own, block by block, up to where it cannot be read."""
        held = room(self.size_bytes)
        have = 0
        with memoryview(held) as view:
            while have < self.size_bytes:
                try:
                    block = self._block(have // BLOCK_BYTES)
                except OSError:
                    break
                view[have : have + len(block)] = block
                have += len(block)
        if not have:
            return b""
        if have < self.size_bytes and isinstance(held, mmap.mmap):
            held.resize(have)
        return held

    def _block(self, index: int) -> bytes:
        try:
            return self.client.block(self.found, index)
        except Refused as error:
            byte = index * BLOCK_BYTES
            if self.lost is None or byte < self.lost.byte:
                self.lost = Lost("read-error", byte, f"the object could not be read on: {error.message}")
            raise OSError(errno.EIO, error.message) from error
