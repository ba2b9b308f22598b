"""A prefix of a bucket as a folder; or one object of it as a file."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from msgspec import Struct

from forensics.errors import InputError, UsageError
from forensics.io.disk import Lost, room
from forensics.io.limits import Limits
from forensics.io.places.client import BLOCK_BYTES, Client, Object, Refused, told_of
from forensics.io.places.place import Found, Seen
from forensics.io.places.services import services
from forensics.model import UNREADABLE


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


#: How `refusals.tsv` names a key that no path can be.
_NO_PATH = "InvalidPathError"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The place at a prefix of a bucket; `prefix` has no slash at its ends, and is empty for the whole bucket."""

    client: Client = field(compare=False, repr=False)
    scheme: str
    bucket: str
    prefix: str

    @property
    def name(self) -> str:
        """The address as the user wrote it."""
        return f"{self.client.name}/{self.prefix}".rstrip("/")

    @property
    def identity(self) -> bytes:
        """The address."""
        return self.name.encode("utf-8", "surrogatepass")

    @property
    def folder(self) -> None:
        """Nowhere on this machine."""
        return

    def looked_through(self, limits: Limits) -> Found:
        """List the objects below the prefix, page by page; without any, the object of that name.

        Raises `UsageError` when nothing has that name; `PlaceError` when the bucket refuses, or answers no more.
        """
        with told_of(self.name):
            found = self._listed(limits)
            if not found.files and not found.skipped:
                return self._alone()
        folders = {seen.path.rpartition("/")[0] for seen in found.files}  # some tools write an empty `a/` to mark one
        found.files = [seen for seen in found.files if seen.size_bytes or seen.path not in folders]
        return found

    def refused(self, path: str) -> str:
        """Only opening an object tells."""
        del path
        return ""

    @contextmanager
    def opened(self, path: str) -> Generator[StoredObject]:
        """Open an object; its first block is read, or was looked into before."""
        yield StoredObject(self.client, self.client.opened(self._key(path)))

    def seen(self, path: str) -> Seen | None:
        """Ask for the size and time of an object."""
        try:
            now = self.client.head(self._key(path))
        except InputError:
            return None
        return Seen(path, now.size_bytes, now.mtime_ns)

    def tag(self, path: str) -> str:
        """The object's ETag, which changes with its content."""
        try:
            return self.client.tag(self._key(path))
        except InputError:
            return ""

    def holding(self, path: str) -> tuple[Bucket, str]:
        """The prefix itself, or the one that holds the object."""
        return (self._above(), path) if self._is_object(path) else (self, path)

    def below(self, folder: str) -> Bucket:
        """A folder of this prefix, over the same connection."""
        return Bucket(self.client, self.scheme, self.bucket, f"{self.prefix}/{folder}".strip("/"))

    @property
    def files(self) -> Iterator[Bucket]:
        """The objects right below the prefix, each as a place.

        Raises `PlaceError` when the bucket refuses, or answers no more.
        """
        with told_of(self.name):
            objects, _ = self.client.children(self.prefix)
        yield from (Bucket(self.client, self.scheme, self.bucket, one.key) for one in objects)

    def _above(self) -> Bucket:
        return Bucket(self.client, self.scheme, self.bucket, self.prefix.rpartition("/")[0])

    def _key(self, path: str) -> str:
        """The key of a file; nothing that a key says leads elsewhere, as keys climb nowhere."""
        return self.prefix if self._is_object(path) else f"{self.prefix}/{path}".removeprefix("/")

    def _is_object(self, path: str) -> bool:
        """Whether the place is the one object of this name: only then is a file called as the place is."""
        return bool(self.prefix) and path == self.prefix.rpartition("/")[2] and self.client.is_object(self.prefix)

    def _alone(self) -> Found:
        if self.prefix and self.client.is_object(self.prefix):
            one = self.client.head(self.prefix)
            return Found([Seen(self.prefix.rpartition("/")[2], one.size_bytes, one.mtime_ns)], is_file=True)
        message = f"no object has this name, and none is below it: {self.name}"
        raise UsageError(message, help=f"name another one: {services()[self.scheme].example}")

    def _listed(self, limits: Limits) -> Found:
        try:
            return self._noted(self.client.listed(self.prefix), limits, Found())
        except Refused as error:
            if error.refusal.sign != _NO_PATH:
                raise
        return self._by_folder(limits)

    def _by_folder(self, limits: Limits) -> Found:
        """List folder by folder, so that a key that no path can be costs the objects of its own folder only."""
        found = Found()
        folders = [self.prefix]
        while folders:
            folder = folders.pop()
            try:
                objects, below = self.client.children(folder)
            except Refused as error:
                if folder == self.prefix or error.refusal.sign != _NO_PATH:
                    raise
                found.skip(self._path(folder), 0, f"{UNREADABLE}: {error.message}")
                continue
            self._noted(iter(objects), limits, found)
            folders += reversed(below)
            if found.issues:
                break
        return found

    def _noted(self, objects: Iterator[Object], limits: Limits, found: Found) -> Found:
        for one in objects:
            path = self._path(one.key)
            if found.is_full(path, limits):
                break
            if path.count("/") > limits.depth:
                found.skip(path, one.size_bytes, f"deeper than {limits.depth} folders")
            else:
                found.files.append(Seen(path, one.size_bytes, one.mtime_ns))
        return found

    def _path(self, key: str) -> str:
        return key.removeprefix(self.prefix).removeprefix("/")


def bucket_at(scheme: str, bucket: str, prefix: str) -> Bucket:
    """Give the place at a prefix; nothing is asked yet."""
    return Bucket(Client(scheme, bucket), scheme, bucket, prefix)
