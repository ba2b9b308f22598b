"""How fast a profiler trace is loaded, and how fast `forensics kernels` answers from it.

    python bench/trace.py [--mb 54 250] [--keep DIR] [--hta PYTHON]

The made-up trace (seeded) has the layout and the mixture of events of a training job: operators with shapes, Python
frames, launches, kernels, flows, memory. Each reader runs in a process of its own; imports are not counted.

`ours` writes typed rows of every event through the sink, as the pipeline does for a run of this size: in memory below
256 MB, else to Parquet parts. `kernels` reads what tells of the device's time (`Limits.device_only`), as the command
does, and computes the breakdown of each rank and the table of kernels. `peer` is `orjson.loads` of the same file, which
makes no columns of it and computes nothing. All three must agree on the number of events, durations, kernels and steps
and on the time of all kernels. `hta`, where another interpreter has Holistic Trace Analysis, loads the trace and
computes its temporal and its kernel breakdown: the same two questions as `kernels`.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SPILL_FROM_BYTES = 256 << 20
KERNELS = [
    f"void at::native::vectorized_elementwise_kernel<4, Functor{n}<float>>(int, long, float*)" for n in range(60)
]
KERNELS += [f"turing_h1688gemm_{n}x64_ldg8_tn" for n in range(40)] + ["ncclDevKernel_AllReduce_Sum_f16_RING_LL(args)"]


def x(cat: str, name: str, where: tuple[object, object], times: tuple[float, float], args: str) -> str:
    """A duration event in the layout of the profiler."""
    return (
        f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": {where[0]}, "tid": {where[1]},\n'
        f'    "ts": {times[0]:.3f}, "dur": {times[1]:.3f},\n    "args": {{\n      {args}\n    }}\n  }}'
    )


def flow(ph: str, number: int, where: tuple[object, object], ts: float) -> str:
    """One end of the arrow from a launch to its kernel."""
    head = f'  {{\n    "ph": "{ph}", "id": {number}, "pid": {where[0]}, "tid": {where[1]}, "ts": {ts:.3f},\n    '
    return head + '"cat": "ac2g", "name": "ac2g", "bp": "e"\n  }'


def events() -> Iterator[str]:
    """Events of steps without end."""
    rng = random.Random(11)
    now, number, host = 5_000_000.0, 1, (3100, 3100)
    while True:
        if number % 1200 == 1:
            yield x("user_annotation", f"ProfilerStep#{number // 1200}", host, (now, 90_000), f'"Ev Idx": {number}')
        shapes = (
            f'"Input Dims": [[{rng.randrange(64)}, 512], [512, 2048], []], "Input type": ["float", "float", "Scalar"]'
        )
        for name in ("aten::linear", "aten::addmm", "aten::add_"):
            args = f'"External id": {number},"Ev Idx": {number * 3}, {shapes}'
            yield x("cpu_op", name, host, (now, 40 * rng.random()), args)
        args = f'"Python parent id": {number - 1}, "Python id": {number}, "Ev Idx": {number}'
        yield x("python_function", f"model.py({number % 300}): forward", host, (now, 60 * rng.random()), args)
        launch = f'"External id": {number}, "cbid": 211, "correlation": {number}'
        yield x("cuda_runtime", "cudaLaunchKernel", host, (now + 5, 4 * rng.random()), launch)
        device = (
            f'"External id": {number}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {number}'
        )
        device += ', "registers per thread": 32, "shared memory": 0, "grid": [64, 1, 1], "block": [128, 1, 1]'
        yield x("kernel", rng.choice(KERNELS), (0, 7), (now + 30, 60 * rng.random()), device)
        yield flow("s", number, host, now + 5)
        yield flow("f", number, (0, 7), now + 30)
        if number % 2:
            memory = f'"Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": {number}, "Total Reserved": 9'
            instant = f'"s": "t", "name": "[memory]",\n    "pid": 3100, "tid": 3100, "ts": {now:.3f}'
            head = f'  {{\n    "ph": "i", "cat": "cpu_instant_event", {instant}'
            yield head + f',\n    "args": {{\n      {memory}\n    }}\n  }}'
        now, number = now + 80, number + 1


def write_trace(path: Path, size_bytes: int) -> None:
    """Write a trace of about `size_bytes`."""
    head = '\n{\n  "schemaVersion": 1,\n  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},\n'
    with path.open("w", encoding="utf-8") as out:
        size, comma = out.write(head + '  "traceEvents": [\n'), ""
        for one in events():
            size += out.write(comma + one)
            comma = ",\n"
            if size >= size_bytes:
                break
        out.write('\n  ],\n  "traceName": "t.json",\n  "baseTimeNanoseconds": 1786000000000000000\n}\n')


#: What a reader says of a trace: events, durations, kernels, nanoseconds of all kernels, steps. It is asked for it
#: once the clock stands still.
Said = dict[str, int]
Telling = Callable[[], Said]


def ours(path: Path) -> Telling:
    """Load to rows."""
    from parts import write_rest  # noqa: PLC0415

    from forensics import registry  # noqa: PLC0415 - the peer must not pay for it
    from forensics.io.limits import DEFAULT  # noqa: PLC0415
    from forensics.io.reading import open_source  # noqa: PLC0415
    from forensics.model import Source  # noqa: PLC0415
    from forensics.store.fill import fill  # noqa: PLC0415

    readers = [one for one in registry.load("ingesters").ingesters if one.name == "chrome_trace"]
    source = Source(path.name, path.stat().st_size)
    folder = tempfile.TemporaryDirectory()
    place = Path(folder.name) if source.size_bytes > SPILL_FROM_BYTES else None
    sink, coverage = fill(open_source(path, source), source, readers, DEFAULT, place)
    if place:
        write_rest(sink, place)
    assert coverage.skipped_bytes == 0

    def told() -> Said:
        import polars as pl  # noqa: PLC0415 - the peer must not pay for it

        parts = [file for table, file, _ in sink.parts if table == "spans"]
        rows = pl.scan_parquet(parts).collect() if parts else sink.frames()["spans"]
        own = rows.filter(pl.col("category") == "kernel")
        folder.cleanup()
        return {
            "events": coverage.records, "durations": rows.height, "kernels": own.height,
            "kernel_ns": own["dur_ns"].sum(), "steps": rows["step"].drop_nulls().n_unique(),
        }  # fmt: skip

    return told


def kernels(path: Path) -> Telling:
    """Answer what the command asks: breakdown, steps and kernels of each rank."""
    from forensics.analyses.traces.breakdown import by_rank  # noqa: PLC0415
    from forensics.analyses.traces.kernels import kernels as table  # noqa: PLC0415
    from forensics.analyses.traces.steps import steps  # noqa: PLC0415
    from forensics.io.limits import DEFAULT  # noqa: PLC0415
    from forensics.pipeline import ingest_run  # noqa: PLC0415
    from forensics.values import replace  # noqa: PLC0415

    run = ingest_run(path, limits=replace(DEFAULT, device_only=True))
    found, marks = table(run), steps(run)
    assert by_rank(run)["count"].sum() == found["count"].sum() > 0
    return lambda: {
        "events": int(dict(run.collect("facts").select("key", "value").iter_rows())["trace.events"]),
        "kernels": found["count"].sum(), "kernel_ns": found["time_ns"].sum(), "steps": marks.height,
    }  # fmt: skip


def peer(path: Path) -> Telling:
    """Parse to dictionaries."""
    import orjson  # noqa: PLC0415 - ours must not pay for it

    events = orjson.loads(path.read_bytes())["traceEvents"]

    def told() -> Said:
        lasting = [one for one in events if one["ph"] == "X"]
        own = [one for one in lasting if one["cat"] == "kernel"]
        return {
            "events": len(events), "durations": len(lasting), "kernels": len(own),
            "kernel_ns": sum(round(one["dur"] * 1000) for one in own),
            "steps": len({one["name"] for one in lasting if one["name"].startswith("ProfilerStep#")}),
        }  # fmt: skip

    return told


#: Runs where Holistic Trace Analysis is installed, and prints the figures that `worker` prints.
HTA = """
import json, resource, sys, time
from hta.trace_analysis import TraceAnalysis
peak_mb = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
idle_mb, begin = peak_mb(), time.process_time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="/")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
work_s = time.process_time() - begin
print(json.dumps({"work_s": work_s, "rss_mb": peak_mb(), "idle_mb": idle_mb}))
"""
READERS = {"ours": ours, "kernels": kernels, "peer": peer}


def worker(name: str, path: Path) -> None:
    """Run one reader here and print its figures as JSON; `work_s` leaves imports out."""
    if name != "peer":
        from forensics import registry  # noqa: PLC0415 - imports are no work

        for module in ("numpy.ma", "forensics.pipeline", "forensics.compare.kernel_profile"):
            import_module(module)
        registry.load("ingesters")
    idle_mb = peak_mb()
    begin = time.process_time()
    told = READERS[name](path)
    figures = {"work_s": time.process_time() - begin, "rss_mb": peak_mb(), "idle_mb": idle_mb}
    print(json.dumps(figures | {"said": told()}))


def peak_mb() -> float:
    """Peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(command: list[str], runs: int) -> dict[str, Any]:
    """Figures of one reader, the run of least CPU of several, each in a process of its own."""
    environment = {"POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    printed = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout for _ in range(runs)
    ]
    return min((json.loads(one.splitlines()[-1]) for one in printed), key=lambda one: one["work_s"])


def agreed(figures: dict[str, dict[str, Any]]) -> None:
    """End where two readers say different values of one trace."""
    truth = figures["peer"]["said"]
    for name, figure in figures.items():
        for key, value in figure["said"].items():
            if value != truth[key]:
                msg = f"{name} says {key} = {value}, the peer {truth[key]}"
                raise SystemExit(msg)


def compare(path: Path, runs: int, hta: str | None) -> None:
    """Print each reader, and the ratios of what answers the same."""
    size_mb = path.stat().st_size / 1e6
    figures = {name: measured([sys.executable, __file__, "--worker", name, str(path)], runs) for name in READERS}
    agreed(figures)
    if hta is not None:
        figures["hta"] = measured([hta, "-c", HTA, str(path)], 1)
    for name, said in figures.items():
        rate = size_mb / said["work_s"]
        memory = f"{said['rss_mb']:6.0f} MB peak ({said['idle_mb']:.0f} before)"
        print(f"{size_mb:6.0f} MB {name:7s} {said['work_s']:7.2f} CPU s {rate:5.0f} MB/s {memory}", flush=True)
    for name, other in (("ours", "peer"), ("kernels", "peer"), ("kernels", "hta")):
        if other in figures:
            ratio = {key: figures[name][key] / figures[other][key] for key in ("work_s", "rss_mb")}
            words = f"{ratio['work_s']:5.2f} of its CPU, {ratio['rss_mb']:.2f} of its memory"
            print(f"{size_mb:6.0f} MB {name} to {other}: {words}", flush=True)


def main() -> None:
    """Make the traces, run the readers, print their figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, nargs="+", default=[54, 250])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--file", type=Path, help="a trace of one's own, uncompressed")
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter that has Holistic Trace Analysis")
    parser.add_argument("--worker", nargs=2)
    args = parser.parse_args()
    if args.worker:
        sys.path.insert(0, str(ROOT))
        worker(args.worker[0], Path(args.worker[1]))
        return
    if args.file:
        compare(args.file, args.runs, args.hta)
        return
    with tempfile.TemporaryDirectory() as temporary:
        for size_mb in args.mb:
            path = (args.keep or Path(temporary)) / f"trace-{size_mb}.json"
            if not path.exists():
                write_trace(path, size_mb * 1_000_000)
            compare(path, args.runs, args.hta)


if __name__ == "__main__":
    main()
