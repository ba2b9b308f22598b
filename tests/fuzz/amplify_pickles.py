"""Pickles in which few values stand for many: snapshots of memory and dumps of the flight recorder."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

from mutate import Case, fill

SIZE_BYTES = 256 << 10
_NESTED = ("function", "history", "settings-nested", "text-nested", "health", "version", "extra")
#: Lists of two references to the list before. They stand first in a document, so that writing them nests nothing.
_LEVELS: list[list[object]] = [["x"]]
for _ in range(60):
    _LEVELS.append([_LEVELS[-1], _LEVELS[-1]])


def _doubled(depth: int) -> list[object]:
    """Two references to a list of two references, and so on: short to write, without end to walk."""
    return _LEVELS[depth]


def _itself() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def snapshots() -> Iterator[tuple[str, object]]:
    """Snapshots in which one frame, list of frames, block, list of blocks or segment stands for many."""

    def snapshot(*, frames: int = 1, blocks: int = 1, segments: int = 1, name: str = "f.py", **more: object) -> object:
        frame = {"filename": name, "line": 7, "name": more.pop("function", "f")}
        block = {"size": 512, "state": "active_allocated", "frames": [frame] * frames, "history": []}
        segment = {"address": 4096, "total_size": 2 << 20, "device": 0, "blocks": [block] * blocks}
        return {"segments": [segment] * segments, "device_traces": [], **more}

    yield "segments", snapshot(segments=100_000)
    yield "blocks", snapshot(blocks=100_000)
    yield "frames", snapshot(frames=100_000)
    yield "blocks-of-segments", snapshot(blocks=5_000, segments=5_000)
    yield "all", snapshot(frames=5_000, blocks=5_000, segments=5_000)
    yield "long-names", snapshot(blocks=50_000, name="n" * 100_000)
    yield "function", snapshot(blocks=20_000, function=_doubled(40))
    yield "function-of-itself", snapshot(blocks=20_000, function=_itself())
    yield "annotations", snapshot(external_annotations=[{"name": "n" * 100_000, "stage": "s"}] * 50_000)
    leaf = dict.fromkeys(range(5_000), 1)
    settings = dict.fromkeys(range(5_000), dict.fromkeys(range(5_000), leaf))
    yield "settings", snapshot(allocator_settings=settings)
    yield "settings-nested", snapshot(allocator_settings={"a": _doubled(40), "b": _itself()})
    event = {"action": "alloc", "addr": 1, "size": 2, "stream": 0, "time_us": 5, "frames": []}
    yield "events", {"device_traces": [[event] * 100_000], "segments": []}
    frame = {"filename": "f", "line": 1, "name": "f"}
    stacks = [{**event, "frames": [frame] * 1_000} for _ in range(60)]
    yield "stacks", {"device_traces": [stacks], "segments": []}
    yield "stacks-differ", {"device_traces": [[{**event, "frames": [frame] * n} for n in range(400)]], "segments": []}
    shared = [frame] * 5_000
    yield "stacks-shared", {"device_traces": [[{**event, "frames": shared} for _ in range(2_000)]], "segments": []}
    yield "traces", {"device_traces": [[event] * 100] * 50_000, "segments": []}
    yield "keys", {"device_traces": [[{**event, f"k{n}": n} for n in range(3_000)]], "segments": []}
    yield "empty-events", {"device_traces": [[dict(event)] * 3 + [{} for _ in range(60_000)]], "segments": []}
    yield "events-and-empty", {
        "device_traces": [[{} if n % 2 else dict(event) for n in range(6_000)] for _ in range(2)], "segments": [],
    }  # fmt: skip
    yield "history", snapshot(history=[_doubled(30)])


def bare_snapshots() -> Iterator[tuple[str, bytes]]:
    """Snapshots that no pickler writes: a stack that goes on one frame a batch, lists that are in no memo."""
    frame = b"}\x94(\x8c\x08filename\x94\x8c\x01f\x94ua"  # entry 3 of the memo
    head = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94" + frame
    goes_on = fill(b"(h\x03e", SIZE_BYTES // 4 * 4)
    yield "stack-goes-on", head + b"\x8c\x0ddevice_traces]](}(\x8c\x06frames](h\x03e" + goes_on + b"ueau."
    lists = fill(b"](h\x03e", SIZE_BYTES // 5 * 5)
    yield "stacks-in-no-memo", head + b"\x8c\x04more](" + lists + b"eu."
    yield "stacks-behind-a-memo", head + b"\x8c\x04more](" + b"]\x94" * 5_000 + lists + b"eu."


def recorders() -> Iterator[tuple[str, object]]:
    """Recorder dumps in which one entry, group, list of ranks or text stands for many."""

    def entry(**more: object) -> dict[str, object]:
        return {
            "profiling_name": "nccl:all_reduce", "state": "scheduled", "collective_seq_id": 1, "pg_id": 0,
            "process_group": ("0", "default_pg"), "input_sizes": [[4]], "frames": [], **more,
        }  # fmt: skip

    def dump(entries: list[dict[str, object]], **more: object) -> object:
        return {"version": "2.5", "pg_config": {"0": {"name": "0", "desc": "d", "ranks": "[0, 1]"}},
                "pg_status": {}, "entries": entries, **more}  # fmt: skip

    frame = {"filename": "f" * 60_000, "line": 7, "name": "f"}
    ranks = list(range(20_000))
    config = {f"{n}": {"name": f"{n}", "desc": "d", "ranks": ranks} for n in range(3_000)}
    status = {f"{n}": {"last_enqueued_collective": 1} for n in range(3_000)}
    yield "entries", dump([entry()] * 100_000)
    yield "frames", dump([entry(frames=[frame] * 1_000)] * 100_000)
    yield "frames-of-entries", dump([entry(frames=[frame] * 40) for _ in range(1_000)])
    yield "sizes", dump([entry(input_sizes=[[7] * 16] * 64)] * 100_000)
    yield "groups", dump([entry()], pg_config=config)
    by_text = {"ranks": str(ranks)}
    yield "groups-by-text", dump([entry()], pg_config={f"{n}": by_text for n in range(10_000)})
    yield "status", dump([entry(pg_id=n) for n in range(1_000)], pg_config={"0": config["0"]}, pg_status=status)
    yield "ranks", dump([entry()] * 50_000, pg_config={"0": config["0"]})
    yield "text", dump([entry(profiling_name="nccl:" + "n" * 100_000, thread_id="t" * 100_000)] * 50_000)
    yield "text-nested", dump([entry(thread_id=_doubled(40), profiling_name=_doubled(40))])
    yield "text-of-itself", dump([entry(thread_id=_itself(), pg_name=_itself())])
    yield "health", dump([entry()], health_check_results=_doubled(40))
    yield "health-of-itself", dump([entry()], health_check_results=_itself())
    yield "health-text", dump([entry()], health_check_results=["n" * 100_000] * 50_000)
    yield "version", dump([entry()], version=_doubled(40), nccl_version=["n" * 100_000] * 50_000)
    yield "extra", dump([entry(more=_doubled(40))])


def pickles(found: Iterator[tuple[str, object]], name: str) -> Iterator[tuple[str, Case]]:
    for label, value in found:
        whole = {"levels": _LEVELS, **value} if isinstance(value, dict) and label in _NESTED else value
        for protocol in (2, 4):
            data = pickle.dumps(whole, protocol)
            yield f"{label}-{protocol}", Case(name, data)
        yield f"{label}-cut", Case(name, data[: len(data) * 9 // 10])
