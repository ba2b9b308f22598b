"""Flight-recorder dumps against plain Python, for files that the test makes: every value, pickled and as JSON."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import InputError, NotMine
from forensics.formats.recorder import reader as flight_recorder
from forensics.formats.recorder import reader as fr_document
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace
from tests.oracles._damage import damaged

pytestmark = pytest.mark.usefixtures("only_owned_columns")
NAME = "nccl_trace_rank_2"
OPS = {"nccl:all_reduce": "all_reduce", "nccl:_all_gather_base": "all_gather", "nccl:broadcast": "broadcast"}
STATES = ("scheduled", "started", "completed")
COLUMNS = (
    *("rank", "group", "group_size", "ranks", "seq", "op_id", "p2p_seq", "op", "in_sizes", "out_sizes", "dtype"),
    *("state", "created_ns", "started_ns", "completed_ns", "timeout_ms", "retired", "stack"),
)


def dump(seed: int, count: int, *, strings: bool = False) -> dict[str, Any]:
    """A dump of a rank of up to three groups; `strings`: JSON writers print group members so."""
    rng = random.Random(seed)
    names = ["0", "1", "27"][: rng.randint(1, 3)]
    members = {name: sorted({2, *rng.sample(range(64), rng.randrange(1, 9))}) for name in names}
    config = {
        name: {"name": name, "desc": "default_pg" if name == "0" else "undefined", "ranks": json.dumps(members[name])}
        for name in names
    }
    status = {"last_enqueued_collective": count, "last_started_collective": count, "last_completed_collective": 1}
    return {
        "version": "2.10",
        "nccl_version": "2.27.5",
        "pg_config": config,
        "pg_status": {str(at): status for at, _ in enumerate(names)},
        "entries": [entry(rng, names, at, tuples=not strings) for at in range(count)],
    }


def entry(rng: random.Random, names: list[str], at: int, *, tuples: bool) -> dict[str, Any]:
    name = rng.choice(names)
    group = (name, "default_pg" if name == "0" else "undefined")
    created = 1_786_000_000_000_000_000 + at * 1_000_003
    frames = [
        {"name": f"f{depth}", "filename": f"/srv/app/m{rng.randrange(3)}.py", "line": rng.randrange(1, 900)}
        for depth in range(rng.choice([0, 1, 3, 30]))
    ]
    sizes = [[rng.randrange(1 << 30) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(3))]
    return {
        "record_id": at, "pg_id": names.index(name), "process_group": group if tuples else list(group),
        "collective_seq_id": at + 1, "p2p_seq_id": 0, "op_id": at + rng.randrange(9), "frames": frames,
        "profiling_name": rng.choice(tuple(OPS)), "time_created_ns": created, "input_sizes": sizes,
        "input_dtypes": ["Float"] * len(sizes), "output_sizes": sizes[::-1], "output_dtypes": ["Float"] * len(sizes),
        "state": rng.choice(STATES), "time_discovered_started_ns": rng.choice([None, created + 5]),
        "time_discovered_completed_ns": rng.choice([None, created + 900]), "retired": rng.random() < 0.5,
        "timeout_ms": rng.choice([600_000, 90_000]), "is_p2p": False,
    }  # fmt: skip


def truth(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What each entry says, read once more by hand."""
    members = {name: json.loads(one["ranks"]) for name, one in document["pg_config"].items()}
    rows: list[tuple[Any, ...]] = []
    for e in document["entries"]:
        name, desc = e["process_group"]
        stack = [f"{f['filename']}:{f['line']} {f['name']}" for f in e["frames"]]
        rows.append(
            (
                2, f"{name}({desc})" if desc != "undefined" else name, len(members[name]), members[name],
                e["collective_seq_id"], e["op_id"], e["p2p_seq_id"], OPS[e["profiling_name"]], e["input_sizes"],
                e["output_sizes"], e["input_dtypes"][0] if e["input_dtypes"] else None, e["state"],
                e["time_created_ns"], e["time_discovered_started_ns"], e["time_discovered_completed_ns"],
                e["timeout_ms"], e["retired"], stack or None,
            )
        )  # fmt: skip
    return rows


def read(data: bytes, name: str = NAME) -> SourceSink:
    opened = opened_bytes(name, data)
    opened.source = replace(opened.source, rank=2)
    sink = SourceSink(opened.source)
    flight_recorder.read(opened, sink, DEFAULT)
    return sink


def written(sink: SourceSink) -> list[tuple[Any, ...]]:
    if "collectives" not in sink.frames():
        return []
    told = {"ranks", "in_sizes", "out_sizes", "stack"}
    return [
        tuple(
            json.loads(cell) if name in told and cell is not None else cell
            for name, cell in zip(COLUMNS, row, strict=True)
        )
        for row in sink.frames()["collectives"].select(COLUMNS).iter_rows()
    ]


@given(st.integers(0, 10**9), st.sampled_from([0, 1, 20, 90]), st.sampled_from([2, 3, 4, 5, "json", "indented"]))
def test_every_value_of_a_dump(seed: int, count: int, form: int | str) -> None:
    document = dump(seed, count, strings=not isinstance(form, int))
    if isinstance(form, int):
        data = pickle.dumps(document, form)
        document = pickle.loads(data)
    else:
        data = json.dumps(document, indent=2 if form == "indented" else None).encode()
        document = json.loads(data)
    sink = read(data)
    assert written(sink) == truth(document)
    assert (sink.issues, sink.coverage("x").skipped_bytes, sink.coverage("x").records) == ([], 0, count)
    events = sink.frames()["events"]
    about = [json.loads(one) for one in events["attrs"]]
    pending = sum(e["state"] != "completed" and not e["retired"] for e in document["entries"])
    assert (int(about[0]["entries"]), int(about[0]["pending"])) == (count, pending)
    groups = [one for one, code in zip(about, events["code"], strict=True) if code == "fr-group"]
    assert [int(one["last_enqueued"]) for one in groups] == [count] * len(document["pg_status"])


@given(st.integers(0, 10**9), st.booleans())
def test_damage_never_gives_fewer_entries_without_a_word(seed: int, pickled: bool) -> None:
    document = dump(seed, 30, strings=not pickled)
    whole = pickle.dumps(document, 4) if pickled else json.dumps(document).encode()
    hit = damaged(whole, seed)
    try:
        sink = read(hit.data)
    except (InputError, NotMine):
        return
    coverage = sink.coverage("x")
    assert coverage.read_bytes + coverage.skipped_bytes == len(hit.data)
    kept = written(sink)
    if not sink.issues and not coverage.skipped_bytes:  # then it is a sound document of other values
        try:
            left = (pickle.loads(hit.data) if pickled else json.loads(hit.data, strict=False)).get("entries", [])
        except (ValueError, EOFError, pickle.UnpicklingError):  # nothing but what is around its values is damaged
            left = document["entries"]
        assert len(kept) >= sum(entry in document["entries"] for entry in left)
    if hit.kind == "cut" or (hit.kind == "zero" and not pickled):  # a pickle writes once what many entries share
        before = truth(document)
        same = sum(row in before for row in kept)
        assert same >= len(kept) - 1 - hit.width // 100


def test_more_entries_than_are_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fr_document, "MOST_ENTRIES", 12)
    sink = read(pickle.dumps(dump(4, 40), 4))
    assert len(written(sink)) == 12
    assert [one.code for one in sink.issues] == ["damaged"]
