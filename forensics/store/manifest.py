"""The manifest of a generation of the store: which source gave which parts, with a checksum of each."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

import orjson

from forensics.model import FileCoverage, FileStatus, Issue
from forensics.store.schema import VERSION

NAME = "manifest.json"
CURRENT = "CURRENT"
_HASH_DIGITS = 16
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of one table; `generation` is the folder it was published in."""

    table: str
    file: str
    rows: int
    sha256: str
    generation: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One source: its content, who read it, what it gave and what was lost."""

    source: str
    sha256: str
    versions: str
    parts: tuple[Part, ...]
    coverage: FileCoverage
    issues: tuple[Issue, ...]


def sha256_of(path: Path) -> str:
    """SHA-256 of a file of the store, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def tool_version() -> str:
    """Version of forensics, as installed."""
    try:
        return version("ml-run-forensics")
    except PackageNotFoundError:
        return "0+unknown"


def publish(home: Path, work: Path, entries: Sequence[Entry]) -> Path:
    """Write the manifest into `work`, rename it to `gen-<hash>` and point CURRENT at it; keep that generation only."""
    body = [asdict(e) for e in entries]
    name = "gen-" + hashlib.sha256(orjson.dumps([tool_version(), _without_generation(body)])).hexdigest()[:_HASH_DIGITS]
    final = home / name
    named = [replace(e, parts=tuple(replace(p, generation=name) for p in e.parts)) for e in entries]
    document = {"schema": VERSION, "tool": tool_version(), "sources": [asdict(e) for e in named]}
    (work / NAME).write_bytes(_dumps(document))
    stale = home / f".stale-{os.getpid()}"
    if final.exists():  # the same content, but a part of it may be damaged: the new copy is the sound one
        final.rename(stale)
    work.rename(final)
    shutil.rmtree(stale, ignore_errors=True)
    pointer = home / f".{CURRENT}-{os.getpid()}"
    pointer.write_text(name, encoding="utf-8")
    pointer.replace(home / CURRENT)
    for old in home.glob("gen-*"):
        if old.name != name:
            shutil.rmtree(old, ignore_errors=True)
    return final


def latest(home: Path) -> list[Entry]:
    """Entries of the current generation; none when there is no store, or it cannot be read."""
    try:
        name = (home / CURRENT).read_text(encoding="utf-8").strip()
        document = orjson.loads((home / name / NAME).read_bytes())
        if document["schema"] != VERSION or document["tool"] != tool_version():
            return []
        return [_entry(e) for e in document["sources"]]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return []


def _entry(raw: Mapping[str, Any]) -> Entry:
    coverage = dict(raw["coverage"])
    coverage["status"] = FileStatus(coverage["status"])
    return Entry(
        source=str(raw["source"]),
        sha256=str(raw["sha256"]),
        versions=str(raw["versions"]),
        parts=tuple(Part(**p) for p in raw["parts"]),
        coverage=FileCoverage(**coverage),
        issues=tuple(Issue(**i) for i in raw["issues"]),
    )


def _without_generation(body: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**e, "parts": [{**p, "generation": ""} for p in cast("list[dict[str, Any]]", e["parts"])]} for e in body]


def _dumps(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)
