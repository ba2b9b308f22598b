"""Traces made for tests: every kind of event of a training job, in the layouts that profilers print."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Event = dict[str, Any]
HOST = (4100, 4100)
OPERATORS = ("aten::mul", "aten::copy_", "c10d::allreduce_", "record_param_comms", "nn::e", "enumerate(DataLoader)#x")
FRAMES = ("torch/nn.py(31): step", "enum.py(3): f", "<built-in {f}>", "nn.Module: {a: [{}]}", "Profile: run")
CALLS = ("cudaLaunchKernel", "cudaEventQuery", "cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaStreamSynchronize")
KERNELS = ("toy_gemm_f32", "void toy_add<4, F{1}>(int)", 'odd "name" \\ with\ttab', "ncclDevKernel_AllReduce(x)")


def events(steps: int, *, seed: int = 3, start_us: float = 2_000_000.0) -> list[Event]:
    """Events of some steps, with launches, kernels, copies, flows, memory, frames and operators."""
    rng, now, number, out = random.Random(seed), start_us, 1, list[Event]()
    for step in range(steps):
        out.append(duration("user_annotation", f"ProfilerStep#{step}", now, 40_000.0))
        for _ in range(12):
            out += _work(rng, now, number)
            now, number = round(now + 900 * rng.random() + 60, 3), number + 1
        now += 20_000
    return out


def duration(cat: str, name: str, ts: float, dur: float, place: tuple[Any, Any] = HOST, **args: Any) -> Event:
    """An event that lasts."""
    where = {"pid": place[0], "tid": place[1]}
    return {"ph": "X", "cat": cat, "name": name, **where, "ts": ts, "dur": dur, "args": args}


def _work(rng: random.Random, now: float, number: int) -> Iterator[Event]:
    later = round(now + 40 + 100 * rng.random(), 3)
    for _ in range(rng.randrange(3)):
        shapes: dict[str, Any] = {
            "External id": number,
            "Input Dims": [[4, 8], []],
            "Concrete Inputs": ["{'a': [", "},\\n  {"],
        }
        yield duration("cpu_op", rng.choice(OPERATORS), now, 40.25, HOST, **shapes)
        yield duration("python_function", rng.choice(FRAMES), now, 60.5, HOST, **{"Python id": number, "Ev Idx": 2})
    call = rng.choice(CALLS)
    yield duration("cuda_runtime", call, round(now + 5, 3), 4.125, cbid=211, correlation=number)
    yield flow("s", number, HOST, now)
    if call.startswith(("cudaLaunch", "cudaMemcpy")):
        cat = "kernel" if call == "cudaLaunchKernel" else "gpu_memcpy"
        name = rng.choice(KERNELS) if cat == "kernel" else "Memcpy HtoD (Pinned -> Device)"
        device = {"device": 0, "stream": 7, "correlation": number, "grid": [4, 1, 1], "bytes": 64}
        if "nccl" in name:
            device |= {"Collective name": "allreduce", "Process Group Name": "0", "Seq": number, "dtype": "Float"}
            device |= {"In msg nelems": 4}
        yield duration(cat, name, later, round(70 * rng.random(), 3), (0, 7), **device)
        yield flow("f", number, (0, 7), later) | {"bp": "e"}
    memory = {"Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": number, "Total Reserved": 9}
    yield {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 4100, "tid": 4100} | {
        "ts": now,
        "args": memory,
    }


def flow(ph: str, number: int, place: tuple[int, int], ts: float) -> Event:
    """One end of an arrow."""
    where = {"pid": place[0], "tid": place[1]}
    return {"ph": ph, "id": number, **where, "ts": ts, "cat": "ac2g", "name": "ac2g"}


def several_a_line(found: Sequence[Event]) -> bytes:
    """The layout of profilers until 2025."""
    return _rooted(",\n".join("  " + _several(one) for one in found))


def one_a_line(found: Sequence[Event]) -> bytes:
    """The layout of an `indent=2` writer."""
    return json.dumps({"schemaVersion": 1, "traceEvents": list(found), "traceName": "t"}, indent=2).encode()


def apart(found: Sequence[Event]) -> bytes:
    """The layout of newer profilers: one field a line, an empty line between events."""
    parts = [json.dumps(one, indent=2).replace("\n", "\n  ") for one in found]
    return _rooted(",\n\n".join("  " + part for part in parts))


def windows(found: Sequence[Event]) -> bytes:
    """Lines that end with a carriage return."""
    return several_a_line(found).replace(b"\n", b"\r\n")


def on_one_line(found: Sequence[Event]) -> bytes:
    """No lines at all."""
    return json.dumps({"schemaVersion": 1, "traceEvents": list(found), "traceName": "t"}).encode()


LAYOUTS: dict[str, Callable[[Sequence[Event]], bytes]] = {
    "several a line": several_a_line,
    "one a line": one_a_line,
    "apart": apart,
    "windows": windows,
    "on one line": on_one_line,
}


def _rooted(text: str) -> bytes:
    head = '{\n  "schemaVersion": 1,\n  "distributedInfo": {"rank": 0},\n  "traceEvents": [\n'
    return f'{head}{text}\n  ],\n  "traceName": "t.json"\n}}\n'.encode()


def _several(one: Event) -> str:
    first = ("ph", "cat", "s", "name", "pid", "tid") if one["ph"] != "f" and one["ph"] != "s" else ()
    heads = ", ".join(
        f'"{key}": {json.dumps(one[key])}' for key in (first or ("ph", "id", "pid", "tid", "ts")) if key in one
    )
    if not first:
        rest = ", ".join(f'"{key}": {json.dumps(one[key])}' for key in ("cat", "name", "bp") if key in one)
        return f"{{\n    {heads},\n    {rest}\n  }}"
    times = ", ".join(f'"{key}": {json.dumps(one[key])}' for key in ("ts", "dur") if key in one)
    args = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in one["args"].items())
    return f'{{\n    {heads},\n    {times},\n    "args": {{\n      {args}\n    }}\n  }}'
