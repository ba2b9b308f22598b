"""Dumps of real and of generated hangs against an independent reading; skipped where they are not at hand."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from forensics.formats.recorder import reader as flight_recorder
from forensics.formats.stacks import dump as stack_dump
from forensics.formats.stacks import pyspy_json
from tests.unit.formats._refusing import unpickled
from tests.unit.formats.conftest import FIXTURES, ingest

HANG = FIXTURES.parents[1] / "shared" / "corpus" / "hang"
pytestmark = pytest.mark.skipif(not HANG.is_dir(), reason="the corpus is not at hand")
#: Seconds for one small dump on a busy machine; it takes about 2 ms on an idle one.
MOST_SECONDS = 0.25


def dumps() -> list[Path]:
    return sorted([*HANG.rglob("trace_rank_*"), *HANG.rglob("_dump_[0-9]*")])


def by_another_reader(data: bytes, *, printed: bool) -> list[tuple[object, ...]]:
    document = json.loads(data) if printed else unpickled(data)
    return [
        (
            e["collective_seq_id"],
            e["op_id"],
            e["profiling_name"],
            e["process_group"][0],
            e["retired"],
            len(e.get("frames", ())),
        )
        for e in document.get("entries", ())
    ]


def test_every_flight_recorder_dump_gives_every_entry() -> None:
    paths = dumps()
    wrong: list[Path] = []
    slow: list[float] = []
    for path in paths:
        data = path.read_bytes()
        begin = time.perf_counter()
        wrote = ingest(flight_recorder.read, path.name, data)
        slow.append(time.perf_counter() - begin)
        rows = wrote.table("collectives").select("seq", "op_id", "attrs", "group", "retired", "stack").rows()
        ours = [
            (s, o, json.loads(a)["op"], g.split("(")[0], r, len(json.loads(k or "[]"))) for s, o, a, g, r, k in rows
        ]
        if ours != by_another_reader(data, printed=path.suffix == ".json") or wrote.issues:
            wrong.append(path)
    assert len(paths) >= 400
    assert not wrong
    assert sorted(slow)[len(slow) // 2] < MOST_SECONDS


def test_every_stack_file_gives_every_frame() -> None:
    paths = sorted(HANG.glob("generated/*/stacks/pyspy_*"))
    wrong: list[Path] = []
    for path in paths:
        data = path.read_bytes()
        failed = data.startswith(b"Error: ")
        read = pyspy_json.read if path.suffix == ".json" and not failed else stack_dump.read
        wrote = ingest(read, path.name, data)
        expected: list[str] = []
        if failed:
            assert wrote.table("events")["code"].to_list() == ["stack-no-answer"]
        elif path.suffix == ".json":
            expected = [frame["name"] for thread in json.loads(data) for frame in thread["frames"]]
        else:
            expected = [name[:500] for name in re.findall(r"^    (\S.*) \([^()]*\)$", data.decode(), re.MULTILINE)]
        if wrote.table("stack_frames")["function"].to_list() != [name[:500] for name in expected] or wrote.issues:
            wrong.append(path)
    assert len(paths) >= 200
    assert not wrong
