"""What a C unpickler that refuses every name reads from a snapshot, beside what the ingester wrote."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from forensics.formats.snapshot import reader as memory_snapshot
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from tests.unit.formats._refusing import unpickled as plain

ROOT = Path(__file__).parents[3]
CORPUS = ROOT.parent / "shared" / "corpus" / "memory"
WHOLE = sorted({*CORPUS.glob("real/*/*.p*kl*"), *CORPUS.glob("real/*/*.pickle"), *CORPUS.glob("generated/*.pickle")})
MASK = (1 << 64) - 1


def maker() -> ModuleType:
    """The script that makes snapshots with truth."""
    if "make_memory_snapshot" in sys.modules:
        return sys.modules["make_memory_snapshot"]
    path = ROOT / "fixtures" / "make" / "memory_snapshot.py"
    spec = importlib.util.spec_from_file_location("make_memory_snapshot", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["make_memory_snapshot"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unpickled(data: bytes) -> dict[str, Any]:
    found = plain(data)
    return found if isinstance(found, dict) else {"segments": found, "device_traces": []}


def written(data: bytes, name: str = "memory.pickle") -> SourceSink:
    opened = opened_bytes(name, data)
    sink = SourceSink(opened.source)
    memory_snapshot.read(opened, sink, DEFAULT)
    return sink


def stack_texts(frames: dict[str, pl.DataFrame]) -> dict[int | None, list[tuple[str, int, str]]]:
    if "stacks" not in frames:
        return {}
    names = {row[0]: row[1:] for row in frames["frames"].select("frame", "file", "line", "function").iter_rows()}
    found: dict[int | None, list[tuple[str, int, str]]] = {}
    for stack, frame in frames["stacks"].sort("stack", "depth").select("stack", "frame").iter_rows():
        found.setdefault(stack, []).append(names[frame])
    return found


def frames_of(value: list[dict[str, Any]] | None) -> list[tuple[str, int, str]] | None:
    return None if value is None else [(one["filename"], one["line"], one["name"]) for one in value]


def events_read(frames: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    """Every row of `allocs`, with its stack as text."""
    if "allocs" not in frames:
        return []
    stacks = stack_texts(frames)
    columns = ("device", "action", "addr", "size", "stream", "t_ns", "device_free", "compile_context", "user_metadata",
               "pool_owner", "pool", "stack")  # fmt: skip
    rows = frames["allocs"].select(columns).iter_rows()
    return [(*row[:-1], None if row[-1] is None else stacks.get(row[-1], [])) for row in rows]


def events_true(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            device, e["action"], e["addr"] & MASK if "addr" in e else None, e["size"], e.get("stream", 0) & MASK,
            e["time_us"] * 1000 if "time_us" in e else None, e.get("device_free"), e.get("compile_context"),
            e.get("user_metadata"), *e.get("pool_id", (None, None)), frames_of(e.get("frames")),
        )
        for device, trace in enumerate(document["device_traces"])
        for e in trace
    ]  # fmt: skip


def blocks_read(frames: dict[str, pl.DataFrame]) -> list[tuple[Any, ...]]:
    if "blocks" not in frames:
        return []
    stacks = stack_texts(frames)
    rows = frames["blocks"].select("segment", "addr", "size", "requested_size", "state", "stack").iter_rows()
    return [(*row[:-1], stacks.get(row[-1], [])) for row in rows]


def blocks_true(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for i, segment in enumerate(document["segments"]):
        addr = segment["address"]
        for b in segment["blocks"]:
            last = (b.get("history") or [{}])[0]
            asked = b.get("requested_size", last.get("real_size"))
            addr = b.get("address", addr)
            held = frames_of(b.get("frames", last.get("frames"))) or []
            found.append((i, addr & MASK, b["size"], asked, b["state"], held))
            addr += b["size"]
    return found
