"""Traces of four writers for the oracles: drawn at random event by event, or as large as asked, in any layout."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Event = dict[str, Any]
ODD = [
    "",
    "{",
    "}",
    '}, {"ph": "X"',
    "},\n  {",
    "]",
    "],",
    'a "quoted" name',
    "\\",
    "\t",
    "\u00e4\u4e2d",
    "\x00",
    "void f<4, F{1}>(int)",
]
NAMES = [*ODD, "aten::mul", "c10d::allreduce_", "ProfilerStep#7", "enumerate(DataLoader)#x", "Profile", "## Wait ##"]
CALLS = ["cudaLaunchKernel", "cudaEventQuery", "cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaEventQuery_v2"]


def events(seed: int, count: int) -> list[Event]:
    """Events of every kind; stamps are text in `@`, so that a writer prints their digits as they are."""
    rng = random.Random(seed)
    stamp = _unix if rng.random() < 0.5 else _own
    kinds = rng.sample(tuple(KINDS), rng.randint(1, len(KINDS)))
    return [KINDS[rng.choice(kinds)](rng, f"@{stamp(rng)}@", f"@{_own(rng)}@") for _ in range(count)]


def _own(rng: random.Random) -> str:
    """Microseconds of a clock of its own: whole, or with three decimals."""
    ns = rng.randrange(9 * 10**12 if rng.random() < 0.5 else 10**5)
    return str(ns // 1000) if rng.random() < 0.2 else f"{ns // 1000}.{ns % 1000:03d}"


def _unix(rng: random.Random) -> str:
    """Microseconds since 1970, with a fraction that no float has, or with none."""
    return f"178{rng.randrange(10**13):013d}" + rng.choice(["", ".1", f".{rng.randrange(1000):03d}"])


def _host(cat: str, names: list[str], key: str) -> Callable[..., Event]:
    def one(rng: random.Random, ts: str, dur: str) -> Event:
        args = {key: rng.randrange(1 << 40), "Input Dims": [[4, 8], []], "Concrete Inputs": rng.choice(NAMES)}
        where = {"pid": 41, "tid": rng.choice([41, 42, "loader"])}
        return {"ph": "X", "cat": cat, "name": rng.choice(names), **where, "ts": ts, "dur": dur, "args": args}

    return one


def _device(cat: str) -> Callable[..., Event]:
    def one(rng: random.Random, ts: str, dur: str) -> Event:
        stream = rng.choice([7, 4294967295])
        args: dict[str, Any] = {"External id": rng.randrange(99), "device": 1, "stream": stream}
        args |= {"correlation": rng.randrange(1 << 33), "grid": [rng.randrange(99), 1, 1], "registers per thread": 40}
        if rng.random() < 0.3:
            args |= {"Collective name": "allreduce", "In msg nelems": rng.randrange(1 << 40), "dtype": "BFloat16"}
            args |= {"Seq": 3, "Process Group Name": rng.choice(NAMES), "Group size": 8}
        elif rng.random() < 0.5:
            args["bytes"] = rng.randrange(1 << 40)
        return {
            "ph": "X",
            "cat": cat,
            "name": rng.choice(NAMES),
            "pid": 1,
            "tid": 7,
            "ts": ts,
            "dur": dur,
            "args": args,
        }

    return one


def _flow(ph: str) -> Callable[..., Event]:
    def one(rng: random.Random, ts: str, dur: str) -> Event:
        del dur
        ends = {"bp": "e"} if ph == "f" else {}
        return {
            "ph": ph,
            "id": rng.randrange(1 << 33),
            "pid": 1,
            "tid": 7,
            "ts": ts,
            "cat": "ac2g",
            "name": "x",
            **ends,
        }

    return one


def _memory(rng: random.Random, ts: str, dur: str) -> Event:
    del dur
    args = {"Device Type": rng.randrange(2), "Device Id": 1, "Bytes": rng.randrange(1 << 40)}
    args |= rng.choice([{}, {"Total Allocated": 2**33, "Total Reserved": 2**34}])
    head = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 41, "tid": 41}
    return head | rng.choice([{"ts": ts}, {"ts": ts}, {}]) | {"args": args}


def _counter(rng: random.Random, ts: str, dur: str) -> Event:
    del dur
    args = {key: rng.choice([rng.randrange(99), rng.random(), "text"]) for key in rng.sample("abc", rng.randrange(4))}
    return {"ph": "C", "name": "queue", "pid": 1, "tid": 7, "ts": ts, "args": args}


def _pair(ph: str) -> Callable[..., Event]:
    def one(rng: random.Random, ts: str, dur: str) -> Event:
        del dur
        return {
            "ph": ph,
            "cat": "user_annotation",
            "name": rng.choice(NAMES),
            "pid": 1,
            "tid": rng.randrange(2),
            "ts": ts,
        }

    return one


def _named(rng: random.Random, ts: str, dur: str) -> Event:
    del ts, dur
    return {"name": "process_name", "ph": "M", "pid": rng.randrange(9), "tid": 0, "args": {"name": rng.choice(NAMES)}}


def _listed(rng: random.Random, ts: str, dur: str) -> Event:
    inner = [{"ph": "X", "name": str(at)} for at in range(rng.randrange(4))]
    return {
        "ph": "X",
        "cat": "trace",
        "name": "outer",
        "pid": 1,
        "tid": 2,
        "ts": ts,
        "dur": dur,
        "args": {"list": inner},
    }


def _loose(rng: random.Random, ts: str, dur: str) -> Event:
    """Of types that no writer should print: the block in which it is decodes another way."""
    event = KINDS[rng.choice(["kernel", "operator", "counter"])](rng, ts, dur)
    return event | {"pid": rng.choice([1.5, None, 4])} | {"tid": rng.choice([None, 7])}


KINDS: dict[str, Callable[..., Event]] = {
    "operator": _host("cpu_op", NAMES, "External id"),
    "frame": _host("python_function", NAMES, "Python id"),
    "call": _host("cuda_runtime", CALLS, "correlation"),
    "note": _host("user_annotation", NAMES, "Ev Idx"),
    "kernel": _device("kernel"),
    "copy": _device("gpu_memcpy"),
    "old": _device("Kernel"),
    "wait": _device("cuda_sync"),
    "begin": _pair("B"),
    "end": _pair("E"),
    "flow": _flow("s"),
    "arrow": _flow("f"),
    "memory": _memory,
    "counter": _counter,
    "named": _named,
    "listed": _listed,
    "loose": _loose,
}


def training(steps: int, *, seed: int = 5) -> Iterator[Event]:
    """Steps of a training job without an end of their own, as large a trace as asked."""
    rng, now, number = random.Random(seed), 5_000_000.0, 0
    shapes = {"Input Dims": [[64, 512], [512, 2048], []], "Input type": ["float", "float", "Scalar"]}
    host = {"pid": 41, "tid": 41}
    for step in range(steps):
        note = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", **host}
        yield note | {"ts": round(now, 3), "dur": 90_000.125, "args": {"Ev Idx": number}}
        for _ in range(1200):
            number += 1
            for name in ("aten::linear", "aten::addmm"):
                args = {"External id": number, **shapes}
                yield {"ph": "X", "cat": "cpu_op", "name": name, **host, "ts": round(now, 3), "dur": 4.25, "args": args}
            args = {"Python id": number, "Ev Idx": number}
            frame = {"ph": "X", "cat": "python_function", "name": f"model.py({number % 300}): forward", **host}
            yield frame | {"ts": round(now, 3), "dur": 61.5, "args": args}
            launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **host}
            yield launch | {"ts": round(now + 5, 3), "dur": 3.001, "args": {"cbid": 211, "correlation": number}}
            args = {"External id": number, "device": 0, "stream": 7, "correlation": number, "grid": [64, 1, 1]}
            args |= {"registers per thread": 168, "shared memory": 0, "block": [128, 1, 1], "warps per SM": 3.55}
            kernel = {"ph": "X", "cat": "kernel", "name": f"gemm_{rng.randrange(97)}", "pid": 0, "tid": 7}
            yield kernel | {"ts": round(now + 30, 3), "dur": round(40 * rng.random(), 3), "args": args}
            flow = {"pid": 0, "tid": 7, "ts": round(now + 5, 3), "cat": "ac2g", "name": "ac2g"}
            yield {"ph": "s", "id": number, **flow}
            yield {"ph": "f", "id": number, **flow, "bp": "e"}
            memory = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": number, "Total Reserved": 9}
            instant = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", **host}
            yield instant | {"ts": round(now, 3), "args": memory}
            now += 80


ROOT = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3}, "deviceProperties": [{"id": 0}]}
LAST: dict[str, Any] = {"traceName": "t.json", "baseTimeNanoseconds": 1_700_000_000_000_000_000}


def _printed(root: Any, **layout: Any) -> bytes:
    return json.dumps(root, **layout).replace('"@', "").replace('@"', "").encode()


def _around(events_printed: Sequence[str], between: str) -> bytes:
    head, last = json.dumps(ROOT)[:-1], json.dumps(LAST)[1:]
    text = f'{head},\n  "traceEvents": [\n  {between.join(events_printed)}\n  ],\n  {last}\n'
    return text.replace('"@', "").replace('@"', "").encode()


def kineto(found: Sequence[Event]) -> bytes:
    """Kineto since 2026: a field a line, an empty line between events."""
    return _around([json.dumps(one, indent=2).replace("\n", "\n  ") for one in found], ",\n\n  ")


def several_a_line(found: Sequence[Event]) -> bytes:
    """Kineto until 2025: place on the first line, times on the second, arguments on lines of their own."""

    def one(event: Event) -> str:
        head = ", ".join(f'"{k}": {json.dumps(v)}' for k, v in event.items() if k not in ("args", "ts", "dur"))
        times = "".join(f',\n    "{k}": {json.dumps(event[k])}' for k in ("ts", "dur") if k in event)
        args = f',\n    "args": {{\n      {json.dumps(event["args"])[1:-1]}\n    }}' if event.get("args") else ""
        return f"{{\n    {head}{times}{args}\n  }}"

    return _around([one(event) for event in found], ",\n  ")


def line_each(found: Sequence[Event]) -> bytes:
    """One event a line."""
    return _around([json.dumps(one) for one in found], ",\n")


def indented(found: Sequence[Event]) -> bytes:
    """A trace that a Python tool wrote again with an indent."""
    return _printed({**ROOT, "traceEvents": list(found), **LAST}, indent=2)


def compact(found: Sequence[Event]) -> bytes:
    """One line without blanks."""
    return _printed({**ROOT, "traceEvents": list(found), **LAST}, separators=(",", ":"))


def jax(found: Sequence[Event]) -> bytes:
    """XLA's profiler: one line, place before name, an empty event at the end, no rank and no base."""
    first = ("ph", "pid", "tid", "ts", "dur")
    turned = [{k: e[k] for k in (*(k for k in first if k in e), *(k for k in e if k not in first))} for e in found]
    return _printed(
        {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*turned, {}]},
        separators=(",", ":"),
    )


def bare_list(found: Sequence[Event]) -> bytes:
    """A list of events and nothing around it."""
    return _printed(list(found))


LAYOUTS: dict[str, Callable[[Sequence[Event]], bytes]] = {
    "kineto": kineto,
    "several": several_a_line,
    "line each": line_each,
    "indented": indented,
    "compact": compact,
    "jax": jax,
    "list": bare_list,
    "windows": lambda found: several_a_line(found).replace(b"\n", b"\r\n"),
}


BETWEEN = {"kineto": b",\n\n  ", "several": b",\n  ", "line each": b",\n", "compact": b","}


def tiled(layout: str, size_bytes: int) -> tuple[bytes, bytes, int]:
    """A trace of about this size that says one step again and again under other numbers; that step; how often."""
    one: bytes = LAYOUTS[layout](list(training(1)))
    begin = one.index(b"{", one.index(b'"traceEvents"'))
    end = one.rindex(b"}", 0, one.index(b'"traceName"')) + 1
    body = one[begin:end]
    copies = size_bytes // len(body)
    steps = (body.replace(b"ProfilerStep#0", b"ProfilerStep#%d" % step) for step in range(copies))
    return one[:begin] + BETWEEN[layout].join(steps) + one[end:], one, copies
