"""Memory snapshots against Python's own pickle, for files that the test makes: every value of every table."""

from __future__ import annotations

import copy
import io
import json
import pickle
import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import InputError, NotMine
from forensics.formats.snapshot import reader as memory_snapshot
from forensics.formats.snapshot._fast import FastReader
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace
from tests.oracles._damage import damaged
from tests.unit.formats._snapshot_truth import MASK, blocks_read, blocks_true, events_read, events_true, stack_texts

pytestmark = pytest.mark.usefixtures("only_owned_columns")
Frames = dict[str, pl.DataFrame]
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "snapshot", "oom")
SEGMENT = (
    *("device", "addr", "total_size", "allocated_size", "active_size", "requested_size"),
    *("stream", "segment_type", "is_expandable"),
)
#: From less than an event to more than the recording.
WINDOWS = st.integers(20, 4000) | st.just(1 << 16)


class Plain(pickle._Unpickler):
    """Python's own unpickler, to which nothing has a name; the one in C takes gigabytes where damage asks for them."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(module_name, global_name)


def unpickled(data: bytes) -> Any:
    return Plain(io.BytesIO(data)).load()


def number(rng: random.Random) -> int:
    """A size of any width that a pickler spells differently."""
    return rng.randrange(1 << rng.choice([1, 8, 9, 16, 17, 31, 32, 33, 40, 47, 48, 55, 56, 62]))


def frame(rng: random.Random) -> dict[str, Any]:
    named = {"filename": f"/srv/job/f{rng.randrange(4)}.py", "line": rng.randrange(300), "name": f"g{rng.randrange(5)}"}
    return named | rng.choice([{}, {}, {"fx_node_op": "call_module", "fx_node_name": "layer"}])


def event(rng: random.Random, stacks: list[list[Any]], layout: frozenset[str], odd: float) -> dict[str, Any]:
    """An event whose keys are those of the layout; its stack is shared, a list of its own, or (`odd`) of own frames."""
    frames = rng.choice(stacks)
    strange = rng.random() < odd
    texts = {"compile_context": rng.choice(["0/0", "1/2", ""]), "user_metadata": rng.choice(["epoch 1", "\u00e4"])}
    told = {"action": rng.choice(ACTIONS), "addr": number(rng) | strange << 63, "size": number(rng)}
    told |= {"stream": -1 if strange else rng.choice([0, number(rng)]), "time_us": rng.randrange(1 << 52)}
    told |= texts | {
        "frames": copy.deepcopy(frames) if strange else rng.choice([frames, list(frames)]),
        "device_free": number(rng),
    }
    told |= {"pool_id": rng.choice([(0, 0), (0, 1), (3, number(rng))])}
    return {key: value for key, value in told.items() if key in layout}


OPTIONAL = ("stream", "time_us", "compile_context", "user_metadata", "frames", "pool_id")


def snapshot(seed: int, count: int) -> dict[str, Any]:
    """A snapshot of up to three devices, events in up to three layouts, segments, blocks, notes and settings."""
    rng = random.Random(seed)
    known = [frame(rng) for _ in range(12)]
    stacks = [[rng.choice(known) for _ in range(rng.choice([0, 1, 2, 5, 40]))] for _ in range(9)]
    must = {"action", "addr", "size"}
    layouts = [frozenset(must | set(rng.sample(OPTIONAL, rng.randrange(7)))) for _ in range(rng.randint(1, 3))]
    layouts.append(layouts[0] | {"device_free"})
    weights = [40, *[rng.choice([1, 40])] * (len(layouts) - 2), 1]
    odd = rng.choice([0, 0, 0.02, 0.3])
    traces = [
        [event(rng, stacks, rng.choices(layouts, weights)[0], odd) for _ in range(rng.choice([0, 1, count]))]
        for _ in range(rng.randint(1, 3))
    ]
    note = {"name": "Optimizer.step", "stage": "START", "device": 0}
    return {
        "segments": [segment(rng, stacks) for _ in range(rng.randrange(5))],
        "device_traces": traces,
        "allocator_settings": {"max_split_size": -1, "PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
        "external_annotations": [note | {"time_us": rng.randrange(1 << 50)} for _ in range(rng.randrange(4))],
    }


def segment(rng: random.Random, stacks: list[list[Any]]) -> dict[str, Any]:
    states = ("active_allocated", "inactive", "active_pending_free")
    blocks = [
        {"address": number(rng), "size": number(rng), "requested_size": number(rng), "state": rng.choice(states)}
        | {"frames": rng.choice(stacks)}
        for _ in range(rng.randrange(1, 6))
    ]
    sizes = {f"{name}_size": number(rng) for name in ("total", "allocated", "active", "requested")}
    about = {
        "device": rng.randrange(8),
        "address": number(rng),
        "stream": 0,
        "segment_type": rng.choice(["large", "small"]),
    }
    more = {"segment_pool_id": (rng.randrange(3), number(rng)), "is_expandable": rng.random() < 0.5}
    return about | sizes | more | {"frames": rng.choice(stacks), "blocks": blocks}


def read(data: bytes, **limits: Any) -> SourceSink:
    opened = opened_bytes("memory.pickle", data)
    sink = SourceSink(opened.source)
    memory_snapshot.read(opened, sink, replace(DEFAULT, **limits))
    return sink


def true_segments(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            s["device"], s["address"] & MASK, s["total_size"], s["allocated_size"], s["active_size"],
            s["requested_size"], s["stream"], s["segment_type"], s["is_expandable"], *s["segment_pool_id"],
            [(f["filename"], f["line"], f["name"]) for f in s["frames"]],
        )
        for s in document["segments"]
    ]  # fmt: skip


def read_segments(frames: Frames) -> list[tuple[Any, ...]]:
    if "segments" not in frames:
        return []
    texts = stack_texts(frames)
    rows = frames["segments"].select(*SEGMENT, "pool_owner", "pool", "stack").rows()
    return [(*row[:-1], texts.get(row[-1], [])) for row in rows]


def fx_nodes(document: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Every frame with what was compiled to it."""
    held = [e.get("frames", []) for trace in document["device_traces"] for e in trace]
    held += [one.get("frames", []) for s in document["segments"] for one in (s, *s["blocks"])]
    keys = ("filename", "line", "name", "fx_node_op", "fx_node_name", "fx_original_trace")
    return {tuple(f.get(key) for key in keys) for frames in held for f in frames}


def assert_equal(sink: SourceSink, document: dict[str, Any]) -> None:
    """All values of all tables."""
    frames = sink.frames()
    assert [*map(with_no_oom_address, events_read(frames))] == [*map(with_no_oom_address, events_true(document))]
    assert blocks_read(frames) == blocks_true(document)
    assert read_segments(frames) == true_segments(document)
    columns = ("file", "line", "function", "fx_node_op", "fx_node_name", "fx_original_trace")
    assert set(frames["frames"].select(columns).rows() if "frames" in frames else []) == fx_nodes(document)
    notes = (
        frames["annotations"].select("seq", "device", "t_ns", "name", "stage").rows() if "annotations" in frames else []
    )
    told = document["external_annotations"]
    assert notes == [(at, n["device"], n["time_us"] * 1000, n["name"], n["stage"]) for at, n in enumerate(told)]
    facts = {key: json.loads(value) for key, value in frames["facts"].select("key", "value").iter_rows()}
    for key, value in document["allocator_settings"].items():
        assert facts[f"memory_snapshot.allocator_settings.{key}"] == value
    events = sum(map(len, document["device_traces"]))
    assert (facts["memory_snapshot.events"], facts["memory_snapshot.devices"]) == (
        events,
        len(document["device_traces"]),
    )
    if events:
        assert frames["allocs"]["seq"].to_list() == list(range(events))
    assert (sink.issues, sink.coverage("x").skipped_bytes) == ([], 0)


def with_no_oom_address(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """An event that tells what the device has left and has the address 0 has none."""
    return (*row[:2], None if row[2] == 0 and row[6] is not None else row[2], *row[3:])


@given(st.integers(0, 10**9), st.sampled_from([3, 30, 150]), st.sampled_from([2, 3, 4, 5]), WINDOWS, st.integers(1, 50))
def test_every_value_is_what_pickle_reads(
    seed: int, count: int, protocol: int, block_bytes: int, batch_rows: int
) -> None:
    data = pickle.dumps(snapshot(seed, count), protocol)
    document = pickle.loads(data)
    assert_equal(read(data, block_bytes=block_bytes, batch_rows=batch_rows), document)


@given(st.integers(0, 10**9), WINDOWS)
def test_the_template_reads_what_single_opcodes_read(seed: int, block_bytes: int) -> None:
    data = pickle.dumps(snapshot(seed, 120), 4)
    fast = read(data, block_bytes=block_bytes).frames()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastReader, "advance", lambda *_: False)
        slow = read(data, block_bytes=block_bytes).frames()
    assert fast.keys() == slow.keys()
    for table in ("segments", "annotations", "facts"):
        assert table not in fast or fast[table].equals(slow[table])
    assert events_read(fast) == events_read(slow)
    assert blocks_read(fast) == blocks_read(slow)


def test_devices_with_one_event_each_keep_their_numbers() -> None:
    one = {"action": "alloc", "addr": 512, "size": 64, "stream": 0, "time_us": 5}
    empty = {"segments": [], "allocator_settings": {}, "external_annotations": []}
    document = {**empty, "device_traces": [[one | {"size": 64 + at}] for at in range(6)]}
    assert_equal(read(pickle.dumps(document, 4)), document)


@given(st.integers(0, 10**9), st.sampled_from([2, 4, 5]), WINDOWS)
def test_damage_keeps_what_stands_before_it_and_is_always_told(seed: int, protocol: int, block_bytes: int) -> None:
    whole = pickle.dumps(snapshot(seed, 60), protocol)
    hit = damaged(whole, seed)
    opened = opened_bytes("memory.pickle", hit.data)
    sink = SourceSink(opened.source)
    try:
        memory_snapshot.read(opened, sink, replace(DEFAULT, block_bytes=block_bytes))
    except (InputError, NotMine):
        return
    coverage = sink.coverage("x")
    assert coverage.read_bytes + coverage.skipped_bytes == len(hit.data)
    try:
        document = unpickled(hit.data)
    except Exception:  # noqa: BLE001 - whatever the C unpickler makes of damage
        document = None
    told = bool(sink.issues) or coverage.skipped_bytes > 0
    if document is None:
        assert told
    if not told:  # then it is a sound pickle of other values, and each event that it holds is read
        traces = document.get("device_traces") if isinstance(document, dict) else None
        assert len(events_read(sink.frames())) == sum(map(len, traces or []))


def test_the_template_is_what_reads_most_events(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [0]
    plain = FastReader.advance

    def counted(self: FastReader, m: Any, device: int) -> bool:
        before = len(self.columns) + self.columns.seq
        done = plain(self, m, device)
        taken[0] += len(self.columns) + self.columns.seq - before
        return done

    monkeypatch.setattr(FastReader, "advance", counted)
    documents = [snapshot(seed, 150) for seed in range(40)]
    for document in documents:
        read(pickle.dumps(document, 4))
    events = sum(len(trace) for document in documents for trace in document["device_traces"])
    assert taken[0] > events / 3


def test_true_size_every_event(true_size: None) -> None:
    del true_size
    rng = random.Random(7)
    known = [frame(rng) for _ in range(500)]
    stacks = [[rng.choice(known) for _ in range(50)] for _ in range(3000)]
    layout = frozenset(("action", "addr", "size", *OPTIONAL))
    document = snapshot(11, 5) | {"device_traces": [[event(rng, stacks, layout, 0) for _ in range(700_000)]]}
    for trace in document["device_traces"]:
        for at, one in enumerate(trace):
            one["frames"] = list(stacks[at % len(stacks)])
    data = pickle.dumps(document, 4)
    assert len(data) > 134_000_000
    assert_equal(read(data), document)
