"""The manifest of a generation of the store: which source gave which parts, with a checksum of each.

A manifest names no file: where a part lies follows from the place of its source in the manifest and from its table.
What is read from a store is checked like any input, for types, bounds and sense; its name is the hash of its content.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from forensics.errors import InputError
from forensics.model import FileCoverage, FileStatus, Issue
from forensics.store.schema import TABLES, VERSION

NAME = "manifest.json"
#: An entry of two parts takes 1,353 bytes, so this is a run of 198,000 files; decoded, it is 1.4 times as large.
MOST_BYTES = 256 << 20
_HASH_DIGITS = 32
_GENERATION = re.compile(rf"gen-[0-9a-f]{{{_HASH_DIGITS}}}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of one table."""

    table: str
    rows: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One source: its content, who read it, what it gave and what was lost; without `sha256` it is never used again."""

    source: str
    sha256: str
    versions: str
    parts: tuple[Part, ...]
    coverage: FileCoverage
    issues: tuple[Issue, ...]

    def files(self, index: int) -> Iterator[tuple[str, Part]]:
        """Where in a generation each part lies, when this entry is the one at `index` of its manifest."""
        seen: Counter[str] = Counter()
        for part in self.parts:
            yield f"{folder_of(index)}/{part.table}-{seen[part.table]:04d}.parquet", part
            seen[part.table] += 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """All sources of a run; `copy` tells generations of the same content apart, where an older one was damaged."""

    schema: int
    tool: str
    copy: int
    sources: tuple[Entry, ...]


def folder_of(index: int) -> str:
    """Name the folder of a source by its place in the manifest."""
    return f"s{index:06d}"


def tool_version() -> str:
    """Version of forensics, as installed."""
    try:
        return version("ml-run-forensics")
    except PackageNotFoundError:
        return "0+unknown"


def encoded(entries: Sequence[Entry], copy: int) -> bytes:
    """Write a manifest as JSON."""
    import msgspec  # noqa: PLC0415 - only a run with a store needs it

    return msgspec.json.format(msgspec.json.encode(Manifest(VERSION, tool_version(), copy, tuple(entries))), indent=1)


def name_of(data: bytes) -> str:
    """Name the generation that has this manifest."""
    return f"gen-{hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]}"


def is_generation(name: str) -> bool:
    """Whether a text is the name of a generation, and so no path."""
    return _GENERATION.fullmatch(name) is not None


def decoded(data: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        InputError: when it is no manifest, or says what no reader can have said.
    """
    import msgspec  # noqa: PLC0415 - only a run with a store needs it

    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = f"its manifest cannot be read: {error}"
        raise InputError(why) from error
    if len({entry.source for entry in found.sources}) < len(found.sources):
        raise InputError("its manifest names a source twice")
    for entry in found.sources:
        if (odd := _odd(entry)) is not None:
            why = f"its manifest makes no sense: {odd} of {entry.source!r}"
            raise InputError(why)
    return found


def _odd(entry: Entry) -> str | None:
    """What in an entry no reader can have said."""
    file = entry.coverage
    statuses = {FileStatus.READ} if file.skipped_bytes == 0 else {FileStatus.PARTIAL, FileStatus.SKIPPED}
    sizes = (file.size_bytes, file.read_bytes, file.skipped_bytes, file.records)
    if entry.sha256 and not _SHA256.fullmatch(entry.sha256):
        return "the checksum"
    if not all(map(_counts, sizes)) or file.read_bytes + file.skipped_bytes != file.size_bytes:
        return "the account of bytes"
    if file.status not in statuses or file.source != entry.source:
        return "the coverage"
    for part in entry.parts:
        if part.table not in TABLES or part.rows == 0 or not (_counts(part.rows) and _counts(part.size_bytes)):
            return "a part"
    for issue in entry.issues:
        if issue.source != entry.source or not all(map(_counts, (issue.byte, issue.line or 0, issue.count))):
            return "an issue"
    return None


def _counts(number: int) -> bool:
    """Whether a number counts something, and a column holds it."""
    return 0 <= number <= _MOST
