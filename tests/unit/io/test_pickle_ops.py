"""Pickled data is read opcode by opcode; whatever could call, import or swell is refused."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forensics.errors import InputError
from forensics.io.pickle.data_ops import DATA_OPS
from forensics.io.pickle.machine import Machine, PickleBounds, PickleCut, PickleRefused
from forensics.io.pickle.ops import read_plain, run

ROOT = Path(__file__).parents[3]
HOSTILE = sorted((ROOT.parent / "shared" / "corpus" / "memory" / "hostile").glob("*.pickle"))


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


CALLS = {
    "a global": b"\x80\x02cos\nsystem\n.",
    "a stack global": b"\x80\x04" + text("os") + text("system") + b"\x93.",
    "a global and a call": b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.",
    "an instance": b"\x80\x02(" + text("true") + b"ios\nsystem\n.",
    "an object": b"\x80\x02(cos\nsystem\no.",
    "a build": b"\x80\x02}}b.",
    "an extension": b"\x80\x02\x82\x01.",
    "a persistent id": b"\x80\x02" + text("a") + b"Q.",
    "a new object": b"\x80\x04))\x81.",
}
SWELLS = {
    "a memo entry far ahead": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a string of a terabyte": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40),
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 36),
    "a frame of a terabyte": b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"}.",
    "a long integer": b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x7f" * (1 << 20) + b".",
    "an integer of 17 bytes": b"\x80\x02\x8a\x11" + b"\x01" * 17 + b".",
    "lists in lists": b"\x80\x02" + b"]" * 400_000 + b"a" * 399_999 + b".",
    "marks": b"\x80\x02" + b"(" * 400_000 + b".",
    "a tuple as key": b"\x80\x02}" + b")" + b"\x85" * 100_000 + b"K\x01s.",
    "a list that holds itself": b"\x80\x04]\x94h\x00a.",
    "a list key": b"\x80\x04}]K\x01s.",
}


def doubling(levels: int) -> bytes:
    """A small pickle whose walk would take 2 to the `levels` steps."""
    made: object = []
    for _ in range(levels):
        made = [made, made]
    return pickle.dumps(made, 4)


@pytest.mark.parametrize("data", CALLS.values(), ids=CALLS)
def test_what_would_call_or_import_is_refused(data: bytes) -> None:
    with pytest.raises(PickleRefused, match="not plain data"):
        read_plain(data)


@pytest.mark.parametrize("data", SWELLS.values(), ids=SWELLS)
def test_what_would_swell_or_recurse_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        read_plain(data)


def test_values_shared_a_billion_times_are_refused() -> None:
    with pytest.raises(PickleRefused, match="shared"):
        read_plain(doubling(29))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_document_of_plain_data_is_read(protocol: int) -> None:
    document = {"a": [1, -1, 2**40, -(2**62), 1.5, None, True, False, "ü", ""], "b": {"c": [("x", "y"), (1, 2, 3), ()]}}
    assert read_plain(pickle.dumps(document, protocol)) == document


def test_a_shared_list_stays_one_list() -> None:
    shared = [1]
    found = read_plain(pickle.dumps({"a": shared, "b": shared}, 4))
    assert found["a"] is found["b"]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"", "empty"),
        (b"PK\x03\x04", "zip"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"(lp0\n", "protocol 2"),
        (b"\x80\x06}.", "6"),
    ],
)
def test_what_is_no_such_pickle_is_named(head: bytes, what: str) -> None:
    with pytest.raises(PickleRefused, match=what):
        read_plain(head)


def test_every_prefix_of_a_document_is_cut_or_refused() -> None:
    data = pickle.dumps({"list": [{"k": [1, 2.5, "text"]}] * 3, "n": 2**70}, 4)
    for length in range(len(data)):
        with pytest.raises((PickleCut, PickleRefused)):
            read_plain(data[:length])


def test_reading_stops_at_the_end_of_the_document() -> None:
    first = pickle.dumps([1], 4)
    m = Machine(first + b"cos\nsystem\n.", PickleBounds())
    assert run(m) == [1]
    assert m.p == len(first)


def test_only_opcodes_of_data_are_known() -> None:
    allowed = {op for op in range(256) if DATA_OPS[op] is not DATA_OPS[0x52]}
    calling = set(b"cRbio\x81\x92\x93\x82\x83\x84PQ")
    assert not allowed & calling
    assert len(allowed) <= 32


@pytest.mark.skipif(not HOSTILE, reason="the corpus of hostile pickles is not beside this checkout")
@pytest.mark.parametrize("path", HOSTILE, ids=lambda p: p.stem)
def test_a_hostile_pickle_costs_no_time_and_ends_in_a_message(path: Path) -> None:
    data = path.read_bytes()
    fine = ("ok_min", "nested_after", "wrong_types", "unknown_action", "huge_addr", "proto5", "list_only")
    harmless = path.stem.startswith(fine)
    gc.collect()
    gc.freeze()  # the collector's time would grow with what all the other tests hold
    before = time.process_time()
    with contextlib.nullcontext() if harmless else pytest.raises(InputError, match=r"\w+ .*byte \d+"):
        read_plain(data)
    used_s = time.process_time() - before
    gc.unfreeze()
    assert used_s < 0.1 + len(data) / 20e6


MEMORY = """
import resource, sys
from forensics.errors import InputError
from forensics.io.pickle.ops import read_plain
calls = []
watched = ("pickle.", "import", "os.", "exec", "compile")
sys.addaudithook(lambda name, args: calls.append(name) if name.startswith(watched) else None)
data = open(sys.argv[1], "rb").read()
calls.clear()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_plain(data)
except InputError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(calls))
"""


@pytest.mark.parametrize(
    "name", ["marks", "lists in lists", "a memo entry far ahead", "a tuple as key", "a long integer"]
)
def test_refusing_takes_no_memory_and_looks_up_no_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pickle"
    path.write_bytes(SWELLS[name])
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True, env=env)
    kib, calls = map(int, done.stdout.split())
    assert kib < 64 << 10
    assert calls == 0
