"""Reading a memory snapshot: CPU and memory beside a C unpickler that refuses every name, on made snapshots.

    python bench/memory_snapshot.py [--mb 16 134] [--folder /tmp/forensics-bench] [--viz _memory_viz.py]
        [--mosaic CHECKOUT --mosaic-python PYTHON]

The peer loads the pickle whole, turns its events into columns, stacks and frames into numbers, and writes Parquet; so
does `forensics` from the same file. Each runs in a process of its own; ratios are of CPU seconds and of peak memory
(RSS): whole, and beyond what the imports of each take. Before that both must say the same: sums of sizes, of addresses
and of times, events by action, and the number of events and frames.

The whole command `forensics memory` stands beside `_memory_viz.py trace_plot` of torch (the file `torch/cuda/
_memory_viz.py` of any wheel, run without torch) and beside `get_memory_profile --profile categories` of mosaic. Both
are looked for where the options say, or FORENSICS_BENCH_VIZ, FORENSICS_BENCH_MOSAIC and FORENSICS_BENCH_MOSAIC_PYTHON;
what is not there is left out, and said so. Both unpickle: they are given only what this script made.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]


def generate(path: Path, megabytes: int) -> None:
    """Write a snapshot of about this size: stacks of 30 frames, three layers, as many steps as it takes."""
    sys.path.insert(0, str(ROOT / "fixtures" / "make"))
    from memory_snapshot import Plan, made, pickled  # noqa: PLC0415 - only this process needs it

    plan = {"layers": 12, "depth": 30, "unit": 1 << 20, "leak_every": 20}
    small = len(pickled(made(Plan(steps=40, **plan))[0])) / 40
    document, _ = made(Plan(steps=max(1, int(megabytes * 1e6 / small)), **plan))
    path.write_bytes(pickled(document))


def peer(path: Path, out: Path) -> dict[str, Any]:
    """Load with the C unpickler, no name allowed, the collector off; then columns and Parquet."""
    import gc  # noqa: PLC0415 - each route imports what it needs
    import pickle  # noqa: PLC0415
    from array import array  # noqa: PLC0415

    import polars as pl  # noqa: PLC0415

    class Refusing(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> Any:  # noqa: ANN401 - never returns
            raise pickle.UnpicklingError(module_name, global_name)

    gc.disable()
    with path.open("rb") as file:
        document = Refusing(file).load()
    frames: dict[tuple[str, str, int], int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    seen: dict[int, int] = {}
    names: dict[str, int] = {}
    columns: dict[str, array[int]] = {
        "device": array("h"), "action": array("b"), "addr": array("Q"), "size": array("q"), "stream": array("Q"),
        "time": array("q"), "stack": array("i"), "context": array("i"), "metadata": array("i"),
    }  # fmt: skip
    add = {name: column.append for name, column in columns.items()}
    for device, trace in enumerate(document["device_traces"]):
        for event in trace:
            held = event.get("frames")
            stack = -1
            if held is not None:
                stack = seen.get(id(held), -1)
                if stack < 0:
                    key = tuple(frames.setdefault((f["name"], f["filename"], f["line"]), len(frames)) for f in held)
                    stack = seen[id(held)] = stacks.setdefault(key, len(stacks))
            add["device"](device)
            add["action"](names.setdefault(event["action"], len(names)))
            add["addr"](event.get("addr", 0))
            add["size"](event["size"])
            add["stream"](event.get("stream", 0))
            add["time"](event.get("time_us", 0))
            add["stack"](stack)
            add["context"](names.setdefault(event.get("compile_context", ""), len(names)))
            add["metadata"](names.setdefault(event.get("user_metadata", ""), len(names)))
    frame = pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})
    frame.write_parquet(out / "peer.parquet", compression="zstd", compression_level=1, statistics=False)
    actions = {one: columns["action"].count(number) for one, number in names.items()}
    return {
        "events": frame.height, "stacks": len(stacks), "frames": len(frames), "size": sum(columns["size"]),
        "addr": sum(columns["addr"]), "time_us": sum(columns["time"]),
        "actions": {one: count for one, count in sorted(actions.items()) if count},
    }  # fmt: skip


def ours(path: Path, out: Path) -> dict[str, Any]:
    """Read as `forensics ingest` does, to Parquet parts."""
    from parts import write_rest  # noqa: PLC0415

    from forensics.formats.snapshot import reader as memory_snapshot  # noqa: PLC0415 - each route imports what it needs
    from forensics.io.limits import DEFAULT  # noqa: PLC0415
    from forensics.io.reading import open_source  # noqa: PLC0415
    from forensics.model import Source  # noqa: PLC0415
    from forensics.store.sink import SourceSink  # noqa: PLC0415

    source = Source(path.name, path.stat().st_size)
    with open_source(path.parent, source) as opened:
        sink = SourceSink(source, folder=out)
        memory_snapshot.read(opened, sink, DEFAULT)
        write_rest(sink, out)
    rows: dict[str, int] = {}
    for table, _, count in sink.parts:
        rows[table] = rows.get(table, 0) + count
    return {"events": rows["allocs"], "frames": rows["frames"]}


def told(path: Path, out: Path) -> dict[str, Any]:
    """What the parts that `ours` wrote say, in the words of the peer."""
    import polars as pl  # noqa: PLC0415 - each route imports what it needs

    del path
    events = pl.read_parquet(out / "allocs-*.parquet")
    actions = events["action"].cast(pl.String).value_counts().rows()
    return {
        "events": events.height, "frames": pl.read_parquet(out / "frames-*.parquet").height,
        "size": events["size"].sum(), "addr": sum(events["addr"].drop_nulls().to_list()),
        "time_us": sum((events["t_ns"].drop_nulls() // 1000).to_list()), "actions": dict(sorted(actions)),
    }  # fmt: skip


def report(path: Path, out: Path) -> dict[str, Any]:
    """Signals over the parts that `ours` wrote."""
    import polars as pl  # noqa: PLC0415 - each route imports what it needs

    from forensics.analyses.snapshots.per_device import snapshots  # noqa: PLC0415
    from forensics.store.run import Run  # noqa: PLC0415
    from forensics.store.schema import TABLES  # noqa: PLC0415

    del path
    parts = {table: sorted(out.glob(f"{table}-*.parquet")) for table in TABLES}
    run = Run("bench", {table: pl.scan_parquet(found) for table, found in parts.items() if found})
    one = snapshots(run)[0]
    return {"quality": one.quality, "leaks": len(one.leaks), "peak": one.peak_bytes}


def bare_peer(path: Path, out: Path) -> dict[str, Any]:
    """Import what the peer imports, and read nothing."""
    import pickle  # noqa: PLC0415 - each route imports what it needs
    from array import array  # noqa: PLC0415

    import polars as pl  # noqa: PLC0415

    del path, out
    return {"imported": [one.__name__ for one in (pickle, array, pl)]}


def bare_ours(path: Path, out: Path) -> dict[str, Any]:
    """Import what `ours` imports, and read nothing."""
    from forensics.formats.snapshot import reader as memory_snapshot  # noqa: PLC0415 - each route imports what it needs
    from forensics.io.reading import open_source  # noqa: PLC0415
    from forensics.store.sink import SourceSink  # noqa: PLC0415

    del path, out
    return {"imported": [one.__name__ for one in (memory_snapshot, open_source, SourceSink)]}


ROUTES = {"peer": peer, "ours": ours, "told": told, "report": report, "bare_peer": bare_peer, "bare_ours": bare_ours}


def measured(route: str, path: Path, out: Path) -> dict[str, Any]:
    """Run a route in a process of its own: CPU seconds and peak memory in MiB."""
    command = [sys.executable, str(HERE), "--route", route, "--file", str(path), "--folder", str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout.splitlines()[-1])


def whole(command: list[str], env: dict[str, str] | None = None) -> dict[str, float]:
    """Run a program to its end: CPU seconds and peak memory in MiB, its start and imports with it."""
    given = None if env is None else {**os.environ, **env}
    process = subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 1}:  # `forensics memory` exits with 1 where it found a leak
        msg = f"{' '.join(command)} ended with {process.returncode}"
        raise SystemExit(msg)
    return {"cpu_s": used.ru_utime + used.ru_stime, "rss_mib": used.ru_maxrss >> 10}


def ingested(path: Path, out: Path) -> None:
    """Print the ratios of reading."""
    them, us, seen, said = (measured(route, path, out) for route in ("peer", "ours", "report", "told"))
    for key in ("events", "frames", "size", "addr", "time_us", "actions"):
        if said[key] != them[key]:
            msg = f"ours says {key} = {said[key]}, the peer {them[key]}"
            raise SystemExit(msg)
    bare = {route: measured(f"bare_{route}", path, out)["rss_mib"] for route in ("peer", "ours")}
    cpu, rss = us["cpu_s"] / them["cpu_s"], us["rss_mib"] / them["rss_mib"]
    beyond = max(us["rss_mib"] - bare["ours"], 1) / max(them["rss_mib"] - bare["peer"], 1)
    size = path.stat().st_size / 1e6
    print(
        f"{size:.0f} MB, {us['events']} events: cpu {cpu:.2f} of the peer, rss {rss:.2f}, beyond imports {beyond:.2f}"
    )
    print(f"  peer {them}\n  ours {us}\n  report {seen}\n  imports {bare}", flush=True)


def reported(path: Path, given: argparse.Namespace) -> None:
    """Print the ratios of the whole command to the tools that show a snapshot."""
    us = whole([sys.executable, "-m", "forensics", "memory", str(path)])
    print(f"  forensics memory {us}")
    page = given.folder / "peer.html"
    if given.viz and Path(given.viz).is_file():
        viz = whole([sys.executable, given.viz, "trace_plot", str(path), "-o", str(page)])
        print(f"  trace_plot {viz}: cpu {us['cpu_s'] / viz['cpu_s']:.2f}, rss {us['rss_mib'] / viz['rss_mib']:.2f}")
    else:
        print("  no _memory_viz.py was given (--viz): trace_plot is left out")
    if given.mosaic and Path(given.mosaic).is_dir():
        options = ["--snapshot", str(path), "--out-path", str(page), "--profile", "categories"]
        command = [given.mosaic_python, "-m", "mosaic.cmd.get_memory_profile", *options]
        them = whole(command, {"PYTHONPATH": str(Path(given.mosaic).resolve())})
        print(f"  mosaic {them}: cpu {us['cpu_s'] / them['cpu_s']:.3f}, rss {us['rss_mib'] / them['rss_mib']:.2f}")
    else:
        print("  no checkout of mosaic was given (--mosaic): its categories are left out")
    page.unlink(missing_ok=True)
    sys.stdout.flush()


def main() -> None:
    """Measure each size and print the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, nargs="*", default=[16, 134])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/forensics-bench"))
    parser.add_argument("--viz", default=os.environ.get("FORENSICS_BENCH_VIZ", ""))
    parser.add_argument("--mosaic", default=os.environ.get("FORENSICS_BENCH_MOSAIC", ""))
    parser.add_argument("--mosaic-python", default=os.environ.get("FORENSICS_BENCH_MOSAIC_PYTHON", sys.executable))
    parser.add_argument("--route", choices=[*ROUTES, "generate"])
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if given.route == "generate":
        generate(given.file, given.mb[0])
        return
    if given.route:
        before = time.process_time()
        found = ROUTES[given.route](given.file, given.folder)
        found |= {"cpu_s": time.process_time() - before}
        found["rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(json.dumps(found))
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    for megabytes in given.mb:
        path = given.folder / f"snapshot-{megabytes}.pickle"
        if not path.exists():
            command = [sys.executable, str(HERE), "--route", "generate", "--file", str(path), "--mb", str(megabytes)]
            subprocess.run(command, check=True, cwd=ROOT)
        out = given.folder / f"parts-{megabytes}"
        out.mkdir(exist_ok=True)
        for old in out.glob("*.parquet"):
            old.unlink()
        ingested(path, out)
        reported(path, given)


if __name__ == "__main__":
    main()
