"""The manifest of a folder of the store: how many rows of each table a source gave, and the files that hold them.

The rows of a table are in its files in the order of the sources, so neither names the other, and a manifest names no
path: the path of a file follows from its table and its number within the table. What is read from a store is checked
like any input, for types, bounds and sense; the name of a folder is the hash of its manifest.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from forensics.errors import InputError
from forensics.io.slices import Slice
from forensics.model import FileCoverage, FileStatus, Issue
from forensics.patterns import lazily
from forensics.store.schema import TABLES, VERSION
from forensics.values import tool_version

NAME = "manifest.json"
#: An entry takes 500 to 700 bytes, so this is a run of 400,000 files; decoded, it is 1.4 times as large.
MOST_BYTES = 256 << 20
_HASH_DIGITS = 32
GENERATION, PACK = "gen", "pack"
_FOLDER = lazily(rf"(?:{GENERATION}|{PACK})-[0-9a-f]{{{_HASH_DIGITS}}}")
_SHA256 = lazily(r"[0-9a-f]{64}")
_MOST = (1 << 63) - 1


class Part(Struct, frozen=True):
    """One Parquet file of one table."""

    table: str
    rows: int
    size_bytes: int
    sha256: str


class Share(Struct, frozen=True):
    """How many rows of a table a source gave."""

    table: str
    rows: int


class SliceRead(Struct, frozen=True):
    """One slice of a source: its message to its format, and the cost of its rows.

    `handover` is empty where the slice was not read to its end; `digests` are the digests of the ranges that begin in
    it.
    """

    part: Slice
    handover: str
    digests: tuple[str, ...]
    cells: int
    work: int


class Entry(Struct, frozen=True):
    """One source: its content, its reader, its rows and its losses; without `sha256` it is never used again.

    `slice` says which slice of the source it describes; None for the whole.
    """

    source: str
    sha256: str
    versions: str
    shares: tuple[Share, ...]
    coverage: FileCoverage
    issues: tuple[Issue, ...]
    slice: SliceRead | None = None


class Manifest(Struct, frozen=True):
    """The contents of a folder; `copy` numbers folders of the same content, after damage to an older one."""

    schema: int
    tool: str
    copy: int
    sources: tuple[Entry, ...]
    parts: tuple[Part, ...]

    def files(self) -> Iterator[tuple[str, Part]]:
        """The name of each part's file."""
        seen: Counter[str] = Counter()
        for part in self.parts:
            yield file_name(part.table, seen[part.table]), part
            seen[part.table] += 1


def file_name(table: str, number: int) -> str:
    """Name a file of a table by its place among them."""
    return f"{table}-{number:04d}.parquet"


def manifest_of(entries: Sequence[Entry], parts: Sequence[Part], copy: int = 0) -> Manifest:
    """Give the manifest of a folder that this version writes."""
    return Manifest(VERSION, tool_version(), copy, tuple(entries), tuple(parts))


def is_ours(found: Manifest) -> bool:
    """Whether a manifest was written by this version."""
    return (found.schema, found.tool) == (VERSION, tool_version())


def encoded(manifest: Manifest) -> bytes:
    """Write a manifest as JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def name_of(data: bytes, kind: str = GENERATION) -> str:
    """Name the folder that has this manifest."""
    return f"{kind}-{hashlib.sha256(data).hexdigest()[:_HASH_DIGITS]}"


def is_folder(name: str, kind: str = GENERATION) -> bool:
    """Whether a text is the name of a folder of this kind, and so no path."""
    return name.startswith(f"{kind}-") and _FOLDER.fullmatch(name) is not None


def decoded(data: bytes) -> Manifest:
    """Read a manifest; raises `InputError` for no manifest, or for values that no reader can write."""
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"its manifest cannot be read: {error}") from error
    if len({(entry.source, entry.slice and entry.slice.part.number) for entry in found.sources}) < len(found.sources):
        raise InputError("its manifest names a source twice")
    for entry in found.sources:
        if entry.slice is not None and not _is_slice(entry.slice, entry.coverage.size_bytes):
            raise InputError("its manifest makes no sense: a slice")
        if (odd := _odd(entry)) is not None:
            raise InputError(f"its manifest makes no sense: {odd} of {entry.source!r}")
    if not all(_is_of_rows(part) and _counts(part.size_bytes) for part in found.parts):
        raise InputError("its manifest makes no sense: a part")
    if _rows_of(found.parts) != _rows_of(share for entry in found.sources for share in entry.shares):
        raise InputError("its manifest makes no sense: its sources gave other rows than its parts hold")
    return found


def _odd(entry: Entry) -> str | None:
    """Values of an entry that no reader can write."""
    file = entry.coverage
    statuses = {FileStatus.READ} if file.skipped_bytes == 0 else {FileStatus.PARTIAL, FileStatus.SKIPPED}
    sizes = (file.size_bytes, file.read_bytes, file.skipped_bytes, file.records)
    if entry.sha256 and not _SHA256.fullmatch(entry.sha256):
        return "the checksum"
    if not all(map(_counts, sizes)) or file.read_bytes + file.skipped_bytes != file.size_bytes:
        return "the account of bytes"
    if file.status not in statuses or file.source != entry.source:
        return "the coverage"
    if not all(map(_is_of_rows, entry.shares)) or len({s.table for s in entry.shares}) < len(entry.shares):
        return "the rows"
    for issue in entry.issues:
        if issue.source != entry.source or not all(map(_counts, (issue.byte, issue.line or 0, issue.count))):
            return "an issue"
    return None


def _is_slice(found: SliceRead, size_bytes: int) -> bool:
    part = found.part
    numbers = (part.number, part.begin, part.lines_before, part.breaks_before, found.cells, found.work)
    is_within = part.number < part.count and part.size_bytes == size_bytes
    return is_within and all(map(_counts, numbers)) and all(map(_SHA256.fullmatch, found.digests))


def _is_of_rows(one: Part | Share) -> bool:
    return one.table in TABLES and one.rows > 0 and _counts(one.rows)


def _rows_of(counted: Iterable[Part | Share]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for one in counted:
        rows[one.table] += one.rows
    return rows


def _counts(number: int) -> bool:
    """Whether a number counts something, and a column holds it."""
    return 0 <= number <= _MOST
