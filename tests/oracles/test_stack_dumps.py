"""Stacks of every tool against the threads they were printed from: every thread, every frame, across every buffer."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import InputError, NotMine
from forensics.formats.stacks import dump as stack_dump
from forensics.formats.stacks import proc_state, pyspy_json
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace
from tests.oracles._damage import damaged

pytestmark = pytest.mark.usefixtures("only_owned_columns")
COLUMNS = ("pid", "thread", "thread_name", "seq", "depth", "function", "file", "line", "kind", "state")
FUNCTIONS = ("forward", "_wait_for_tstate_lock", "<module>", "<lambda>", "step (inlined)", "operator()", "f<int, (x)1>")
NATIVE = ("ncclAllReduce", "pthread_cond_wait", "at::native::add")


@dataclass(frozen=True)
class Thread:
    """What is printed of one thread; frames innermost first: function, file, line, whether it is native."""

    pid: int
    number: int
    name: str
    state: str
    frames: tuple[tuple[str, str, int, bool], ...]


def threads(seed: int, count: int, functions: tuple[str, ...]) -> list[Thread]:
    rng = random.Random(seed)

    def frame() -> tuple[str, str, int, bool]:
        if rng.random() < 0.3:
            return rng.choice(NATIVE), "/usr/lib/libnccl.so.2", rng.randrange(1, 900), True
        return rng.choice(functions), f"/srv/app/m{rng.randrange(9)}.py", rng.randrange(1, 9000), False

    return [
        Thread(
            100 + at // 5,
            rng.randrange(1, 1 << 31),
            rng.choice(["MainThread", "pin_memory", "Thread-1 (run)"]),
            rng.choice(["idle", "active", "gil"]),
            tuple(frame() for _ in range(rng.choice([1, 2, 7, 60]))),
        )
        for at in range(count)
    ]


Row = tuple[Any, ...]
Printed = tuple[str, list[Row]]


def pyspy(found: list[Thread]) -> Printed:
    """`py-spy dump --native`."""
    lines: list[str] = []
    rows: list[Row] = []
    pid = None
    for seq, one in enumerate(found):
        if one.pid != pid:
            pid = one.pid
            lines += [f"Process {pid}: python train.py --local-rank=3", "Python v3.12.3 (/usr/bin/python3.12)", ""]
        shown = {"gil": "active+gil"}.get(one.state, one.state)
        lines.append(f'Thread {one.number} ({shown}): "{one.name}"')
        for depth, (function, file, line, native) in enumerate(one.frames):
            lines.append(f"    {function} ({file}:{line})")
            kind = "native" if native else "python"
            rows.append((pid, str(one.number), one.name, seq, depth, function, file, line, kind, one.state))
    return "\n".join(lines) + "\n", rows


def faulthandler(found: list[Thread]) -> Printed:
    """`faulthandler.dump_traceback`: Python frames alone."""
    lines = ["Fatal Python error: Aborted", ""]
    rows: list[Row] = []
    for seq, one in enumerate(found):
        own = [frame for frame in one.frames if not frame[3]]
        current = one.state == "active"
        lines.append(f"{'Current thread' if current else 'Thread'} 0x{one.number:016x} (most recent call first):")
        lines += [f'  File "{file}", line {line} in {function}' for function, file, line, _ in own]
        lines.append("")
        state = "active" if current else None
        rows += [
            (None, f"0x{one.number:016x}", None, seq, depth, function, file, line, "python", state)
            for depth, (function, file, line, _) in enumerate(own)
        ]
    return "\n".join(lines), rows


def pystack(found: list[Thread]) -> Printed:
    """`pystack remote --native`, innermost last."""
    lines: list[str] = []
    rows: list[Row] = []
    for seq, one in enumerate(found):
        flags = "Has the GIL" if one.state == "gil" else ""
        lines.append(f"Traceback for thread {one.number} (python) [{flags}] (most recent call last):")
        for function, file, line, native in one.frames[::-1]:
            kind = "C" if native else "Python"
            lines += [f'    ({kind}) File "{file}", line {line}, in {function}', "        x = y(z)"]
        state = "gil" if one.state == "gil" else None
        rows += [
            (None, str(one.number), "python", seq, depth, function, file, line, "native" if native else "python", state)
            for depth, (function, file, line, native) in enumerate(one.frames)
        ]
    return "\n".join(lines) + "\n", rows


def gdb(found: list[Thread]) -> Printed:
    """`thread apply all bt`."""
    lines: list[str] = []
    rows: list[Row] = []
    for seq, one in enumerate(found):
        lines += ["", f'Thread {seq + 1} (Thread 0x7f00{one.number:08x} (LWP {one.number}) "{one.name}"):']
        for depth, (function, file, line, native) in enumerate(one.frames):
            place = f"from {file}" if native else f"at {file}:{line}"
            lines.append(f"#{depth}  0x00007f{depth:010x} in {function} (arg=1) {place}")
            shown = (None, str(one.number), one.name, seq, depth, function, file)
            rows.append((*shown, None if native else line, "native", None))
    return "\n".join(lines) + "\n", rows


def spoken(found: list[Thread]) -> Printed:
    """`py-spy dump --json`."""
    items = [
        {
            "pid": one.pid, "thread_id": 5, "os_thread_id": one.number, "thread_name": one.name,
            "active": one.state != "idle", "owns_gil": one.state == "gil",
            "process_info": {"pid": one.pid, "command_line": f"python t.py --local-rank={one.pid % 8}"},
            "frames": [
                {"name": f, "filename": file, "short_filename": "m.py", "module": None, "line": n, "locals": None}
                for f, file, n, _ in one.frames
            ],
        }
        for one in found
    ]  # fmt: skip
    rows = [
        (one.pid, str(one.number), one.name, seq, depth, f, file, n, "native" if native else "python", one.state)
        for seq, one in enumerate(found)
        for depth, (f, file, n, native) in enumerate(one.frames)
    ]
    return json.dumps(items, indent=2), rows


WRITERS: dict[str, tuple[Callable[[list[Thread]], Printed], str, tuple[str, ...]]] = {
    "py-spy": (pyspy, "pyspy-0.txt", (*FUNCTIONS[:4], "operator()")),
    "faulthandler": (faulthandler, "faulthandler.txt", FUNCTIONS),
    "pystack": (pystack, "pystack.txt", FUNCTIONS[:4]),
    "gdb": (gdb, "gdb.txt", ("forward", "PyEval_EvalFrame")),
    "json": (spoken, "pyspy-0.json", FUNCTIONS),
}


def read(name: str, text: bytes, **limits: Any) -> SourceSink:
    kept = replace(DEFAULT, **limits)
    opened = opened_bytes(name, text, kept)
    sink = SourceSink(opened.source, kept)
    (pyspy_json if name.endswith("json") else stack_dump).read(opened, sink, kept)
    return sink


def written(sink: SourceSink) -> list[Row]:
    frames = sink.frames()
    return frames["stack_frames"].select(COLUMNS).rows() if "stack_frames" in frames else []


@pytest.mark.parametrize("writer", WRITERS)
@given(st.integers(0, 10**9), st.integers(1, 40), st.integers(1, 90), st.integers(64, 5000))
def test_every_frame_of_every_thread(writer: str, seed: int, count: int, batch_rows: int, block_bytes: int) -> None:
    printed, name, functions = WRITERS[writer]
    text, rows = printed(found := threads(seed, count, functions))
    sink = read(name, text.encode(), batch_rows=batch_rows, block_bytes=block_bytes)
    assert written(sink) == rows
    assert (sink.issues, sink.coverage("x").skipped_bytes, sink.coverage("x").records) == ([], 0, count)
    if writer in ("py-spy", "json"):
        events = sink.frames()["events"]
        told = [(seq, int(json.loads(attrs)["pid"])) for seq, attrs in events.select("seq", "attrs").iter_rows()]
        assert told == list(enumerate(dict.fromkeys(one.pid for one in found)))


@pytest.mark.parametrize("writer", WRITERS)
@given(st.integers(0, 10**9))
def test_damage_costs_what_it_touches_and_is_told(writer: str, seed: int) -> None:
    printed, name, functions = WRITERS[writer]
    text, rows = printed(threads(seed, 12, functions))
    hit = damaged(text.encode(), seed)
    try:
        sink = read(name, hit.data)
    except (NotMine, InputError):
        return
    coverage = sink.coverage("x")
    assert coverage.read_bytes + coverage.skipped_bytes == len(hit.data)
    kept = Counter(row[5:8] for row in written(sink))  # below a torn header stand frames of the thread before
    lost = (Counter(row[5:8] for row in rows) - kept).total()
    told = bool(sink.issues) or coverage.skipped_bytes > 0
    if hit.kind in ("flip", "zero", "structure") and writer != "json":
        if hit.at < text.encode().find(rows[0][5].encode()):  # the first header: there is no thread before it
            assert told or lost <= 2 + hit.width // 20
        else:
            assert lost <= 2 + hit.width // 20
    # text that lost whole lines is a dump like any other, and two lines that became one may be a frame
    detectable = writer == "json" or hit.kind in ("flip", "zero", "structure")
    if detectable and not told:
        assert kept.total() >= min(len(rows), frames_left(hit.data) if writer == "json" else len(rows)) - 1


def frames_left(data: bytes) -> int:
    """Frames of a document that is sound JSON of other values."""
    threads = json.loads(data, strict=False)
    return sum(len(one["frames"]) for one in threads if isinstance(one, dict) and isinstance(one.get("frames"), list))


@given(st.integers(0, 10**9), st.integers(1, 30), st.integers(1, 9))
def test_every_process_of_a_capture(seed: int, count: int, batch_rows: int) -> None:
    rng = random.Random(seed)
    fields = [
        {"Name": "python", "State": rng.choice(["S (sleeping)", "D (disk sleep)"]), "Pid": str(rng.randrange(1, 9999))}
        | {"Threads": str(rng.randrange(99)), "VmRSS": f"{rng.randrange(1 << 30)} kB", "wchan": "futex_wait"}
        for _ in range(count)
    ]
    text = "\n".join(f"{key}:\t{value}" for one in fields for key, value in one.items()).encode() + b"\n"
    kept = replace(DEFAULT, batch_rows=batch_rows)
    sink = SourceSink(opened_bytes("status", text).source, kept)
    proc_state.read(opened_bytes("status", text), sink, kept)
    rows = sink.frames()["events"].select("seq", "line", "attrs").rows()
    for at, (one, (seq, line, attrs)) in enumerate(zip(fields, rows, strict=True)):
        said = json.loads(attrs)
        assert (seq, line, said["state"], said["pid"]) == (at, 1 + 6 * at, one["State"][0], one["Pid"])
        assert int(said["rss_bytes"]) == int(one["VmRSS"].split()[0]) << 10
