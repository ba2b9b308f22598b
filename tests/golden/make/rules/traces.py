"""Runs that left profiler traces: a starved device, host syncs, tiny kernels, exposed communication, what grew since."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from make._logs import done, falling, fixtures, run_log, start, steady
from make.base import Label, Made, Pair, lines
from make.rules.slowdown import timed

_HOST = (4100, 4100)
GEMM = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
TINY = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)"
CUSTOM = "triton_poi_fused_custom_mask_17"


def runs() -> Iterator[Made]:
    """One trace for each finding, then pairs of traces of one run, then a trace in which nothing is wrong."""
    yield _traced(
        "trace-loader-starves", _starved, Label("suspect", "slowdown", says=("loader", "workers", "prefetch"))
    )
    yield _traced("trace-host-syncs", _syncs, Label("suspect", "slowdown", says=("item", "sync", "cpu")))
    yield _traced(
        "trace-launch-bound", _launch_bound, Label("suspect", "slowdown", says=("graph", "compile", "fuse", "launch"))
    )
    yield _traced("trace-exposed-communication", _exposed, Label("suspect", "slowdown"))
    yield _traced("trace-host-work", _works, Label("suspect", "slowdown", says=("workers", "thread", "every N steps")))
    yield _traced("trace-host-copies", _copies, Label("suspect", "slowdown", says=("pinned", "non_blocking")))
    yield _traced("trace-recompiles", _compiles, Label("suspect", "slowdown"))
    yield _traced("trace-busy-device", _busy, Label("healthy"))
    yield from _grown()
    ranks = {rank: _of_rank(rank) for rank in range(4)}
    yield Made(
        "trace-one-rank-comes-last",
        {**{f"traces/rank{rank}.pt.trace.json": one for rank, one in ranks.items()}, "train.log": _log()},
        Label("suspect", "slowdown", culprits=(2,)),
    )
    slow = [*steady(0.5, 120, 0.01), *steady(1.1, 120, 0.01, 2)]
    early = Trace(first=12).steps(4, _busy).json()
    yield Made(
        "trace-taken-before-it-was-slow",
        {"train.log": timed(slow), "traces/early.pt.trace.json": early},
        Label("suspect", "slowdown", onset=121, within=2),
    )
    yield from _waited()


def pairs() -> Iterator[Pair]:
    """Traces of two runs, of which one waits for what the other does not."""
    yield Pair("traces-communication", ("trace-busy-device",), "trace-exposed-communication", "regression|inconclusive")
    yield Pair("traces-loader", ("trace-busy-device",), "trace-loader-starves", "regression|inconclusive")


@dataclass
class Trace:
    """Events of some steps of one rank; times in microseconds."""

    rank: int = 0
    first: int = 40
    events: list[dict[str, Any]] = field(default_factory=list)
    at: float = 2_000_000.0
    number: int = 900

    def host(self, category: str, name: str, at: float, dur: float, **args: object) -> None:
        """An event on the training thread."""
        self.events.append(fixtures("trace_events").x(category, name, _HOST, at, dur, args or None))

    def launch(self, name: str, at: float, start: float, dur: float) -> None:
        """A launch on the host, and the kernel that it starts on the device."""
        self.number += 1
        self.host("cuda_runtime", "cudaLaunchKernel", at, 4, correlation=self.number)
        one = fixtures("trace_events").kernel(name, start, dur, self.number, self.rank)
        self.events.append(one | {"args": {key: one["args"][key] for key in ("device", "stream", "correlation")}})

    def steps(self, count: int, body: Callable[[Trace, float], float]) -> Trace:
        """Steps of the profiler's schedule; `body` adds what happens in one and gives its length."""
        for step in range(self.first, self.first + count):
            begin = self.at
            length = body(self, begin)
            self.host("user_annotation", f"ProfilerStep#{step}", begin, length - 1)
            self.at = begin + length
        return self

    def json(self) -> str:
        """The file that the profiler writes."""
        head = fixtures("trace_events").head(self.rank)
        rows = ",\n".join(json.dumps(one) for one in self.events)
        return json.dumps(head)[:-1] + f', "traceEvents": [\n{rows}\n]}}\n'


def _log(count: int = 90, every: int = 1) -> str:
    log = run_log({"loss": falling(count)}, first=every, every=every)
    return lines(start(), log, done(count * every))


def _traced(name: str, body: Callable[[Trace, float], float], label: Label) -> Made:
    return Made(name, {"profile/rank0.pt.trace.json": Trace().steps(5, body).json(), "train.log": _log()}, label)


def _busy(trace: Trace, begin: float) -> float:
    for at in range(6):
        trace.launch(GEMM, begin + 10 + 20 * at, begin + 20 + 160 * at, 158)
    return 1000


def _starved(trace: Trace, begin: float) -> float:
    trace.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin + 5, 600)
    for at in range(3):
        trace.launch(GEMM, begin + 620 + 10 * at, begin + 640 + 120 * at, 118)
    return 1010


def _syncs(trace: Trace, begin: float) -> float:
    for at in range(4):
        base = begin + 10 + 250 * at
        trace.launch(GEMM, base, base + 10, 110)
        trace.host("cpu_op", "aten::item", base + 6, 128)
        trace.host("cuda_runtime", "cudaStreamSynchronize", base + 8, 124, correlation=trace.number + 5000)
        trace.host("cpu_op", "aten::add", base + 140, 100)
    return 1010


def _works(trace: Trace, begin: float) -> float:
    """Each step ends in a short `.item()`, before which the device was done; then the program makes a batch."""
    trace.host("python_function", "train.py(31): make_batch", begin + 5, 9_000)
    for at in range(4):
        trace.launch(GEMM, begin + 9_010 + 10 * at, begin + 9_020 + 400 * at, 399)
    trace.host("cpu_op", "aten::item", begin + 9_060, 1_570)
    trace.host("cuda_runtime", "cudaStreamSynchronize", begin + 9_062, 1_566, correlation=trace.number + 5000)
    return 10_640


def _copies(trace: Trace, begin: float) -> float:
    trace.number += 1
    trace.host("cuda_runtime", "cudaMemcpyAsync", begin + 5, 610, correlation=trace.number)
    args = {"device": 0, "stream": 7, "correlation": trace.number, "bytes": 1 << 22}
    copy = fixtures("trace_events").x("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", (0, 7), begin + 10, 600, args)
    trace.events.append(copy)
    for at in range(3):
        trace.launch(GEMM, begin + 620 + 10 * at, begin + 640 + 120 * at, 118)
    return 1010


def _launch_bound(trace: Trace, begin: float) -> float:
    for at in range(20):
        trace.launch(TINY, begin + 10 + 40 * at, begin + 20 + 40 * at, 3.5)
        trace.host("cpu_op", "aten::add", begin + 6 + 40 * at, 30)
    return 830


def _exposed(trace: Trace, begin: float) -> float:
    for at in range(3):
        trace.launch(GEMM, begin + 10 + 20 * at, begin + 20 + 150 * at, 148)
    for at in range(3):
        trace.launch(NCCL, begin + 100 + 20 * at, begin + 470 + 170 * at, 165)
    return 1000


def _compiles(trace: Trace, begin: float) -> float:
    trace.host("cpu_op", "_compile.compile_inner (dynamo_timed)", begin + 20, 400)
    for at in range(3):
        trace.launch(GEMM, begin + 430 + 20 * at, begin + 460 + 160 * at, 158)
    return 1000


def _of_rank(rank: int) -> str:
    """All-reduces that end together; rank 2 comes last to each, so that the others are in theirs for long."""

    def body(trace: Trace, begin: float) -> float:
        for at in range(3):
            late = begin + 330 * at + (220 if rank == 2 else 90)
            trace.launch(GEMM, begin + 330 * at + 5, begin + 330 * at + 10, late - begin - 330 * at - 14)
            trace.launch(NCCL, begin + 330 * at + 8, late, begin + 330 * at + 260 - late)
        return 1000

    return Trace(rank=rank).steps(4, body).json()


def _grown() -> Iterator[Made]:
    def mixed(extra: str, dur: float) -> Callable[[Trace, float], float]:
        def body(trace: Trace, begin: float) -> float:
            for at in range(4):
                trace.launch(GEMM, begin + 10 + 20 * at, begin + 20 + 160 * at, 150)
            trace.launch(extra, begin + 100, begin + 670, dur)
            return 700 + dur

        return body

    def copies(dur: float) -> Callable[[Trace, float], float]:
        def body(trace: Trace, begin: float) -> float:
            _busy(trace, begin)
            trace.number += 1
            trace.host("cuda_runtime", "cudaMemcpyAsync", begin + 140, 5, correlation=trace.number)
            args = {"device": 0, "stream": 7, "correlation": trace.number, "bytes": 1 << 20}
            trace.events.append(
                fixtures("trace_events").x(
                    "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", (0, 7), begin + 990, dur, args
                )
            )
            return 1000 + dur

        return body

    def both(name: str, early: Callable[[Trace, float], float], late: Callable[[Trace, float], float]) -> Made:
        traces = {
            "profile/step_40/rank0.pt.trace.json": Trace(first=40).steps(3, early).json(),
            "profile/step_600/rank0.pt.trace.json": Trace(first=600, at=90_000_000.0).steps(3, late).json(),
        }
        return Made(name, {**traces, "train.log": _log(every=10)}, Label("suspect", "slowdown", onset=600, within=3))

    yield both("trace-communication-grew", mixed(NCCL, 60), mixed(NCCL, 420))
    yield both("trace-copies-grew", copies(8), copies(190))
    yield both("trace-other-kernels-grew", mixed(CUSTOM, 40), mixed(CUSTOM, 300))


def _waited() -> Iterator[Made]:
    """Two traces with the same kernels, of which the later one waits between them, or as long as the first."""

    def gaps(gap: float) -> Callable[[Trace, float], float]:
        def body(trace: Trace, begin: float) -> float:
            for at in range(4):
                trace.launch(GEMM, begin + 10 + 20 * at, begin + 20 + (150 + gap) * at, 150)
            return 620 + 4 * gap

        return body

    for name, late, label in (
        (
            "trace-idle-time-grew",
            110.0,
            Label("suspect", "slowdown", ("idle_device", "idle_grew"), onset=600, within=3),
        ),
        ("trace-idle-time-as-before", 5.0, Label("healthy")),
    ):
        traces = {
            "profile/step_40/rank0.pt.trace.json": Trace(first=40).steps(3, gaps(4.0)).json(),
            "profile/step_600/rank0.pt.trace.json": Trace(first=600, at=90_000_000.0).steps(3, gaps(late)).json(),
        }
        yield Made(name, {**traces, "train.log": _log(every=10)}, label)
