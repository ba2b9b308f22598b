"""How fast a W&B transaction log is read, beside the usual route: own framing, wandb's message classes and `json`.

    python bench/wandb.py [--mb 450] [--keep DIR] [--metrics 50]

One made-up log (seeded) as newer writers leave it: each step one history row, one summary of the same size and a small
one. `peer` decodes every record and keeps (name, step, value) in memory; `columns` keeps typed rows in memory, as a run
of usual size is read; `parquet` writes them to the store, which the peer does not. Points, steps and values of each
metric must be those of the peer. Then many small logs of 1 MB. Each
reader runs in a process of its own with one thread; CPU time and peak anonymous memory are those of that process.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import random
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

BLOCK, HEADER = 32_768, b":W&B\xe1\xbe\x00"
_CHUNK = struct.Struct("<IHB")
#: Figures of a reader, and what gives its checksums afterwards.
Read = tuple[dict[str, object], Callable[[], dict[str, list[int]]]]


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def block(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


class Log:
    """A transaction log under the pen."""

    def __init__(self, out: BinaryIO) -> None:
        """Begin with the header."""
        self.out, self.size, self.number = out, out.write(HEADER), 0

    def record(self, field: int, content: bytes) -> None:
        """Add one record, cut at the blocks."""
        self.number += 1
        rest, begun = b"\x08" + varint(self.number) + block(field, content), False
        while rest or not begun:
            left = BLOCK - self.size % BLOCK
            if left < _CHUNK.size:
                self.size += self.out.write(bytes(left))
                left = BLOCK
            part, rest = rest[: left - _CHUNK.size], rest[left - _CHUNK.size :]
            kind = (3 if rest else 4) if begun else (2 if rest else 1)
            crc = zlib.crc32(bytes([kind]) + part)
            self.size += self.out.write(_CHUNK.pack(crc, len(part), kind) + part)
            begun = True


def write_log(path: Path, size_bytes: int, metrics: int) -> None:
    """Write a log of about `size_bytes`: falling curves with noise, an infinity, and a loss that ends as NaN."""
    rng = random.Random(3)
    names = ["train/loss", "train/lr", "train/grad_norm", "perf/step_time", "train/global_step"]
    names += [f"layers/block_{n:02d}/act_norm" for n in range(metrics - len(names))]
    heads = [block(2, name.encode()) for name in names]
    with path.open("wb") as out:
        log = Log(out)
        log.record(21, block(1, block(1, b"0.24.2+made.up")))
        log.record(17, block(1, b"b3nchm4r") + block(3, b"bench"))
        step = 0
        while log.size < size_bytes:
            late = log.size > 0.9 * size_bytes
            row = [repr(math.exp(-step / 50_000) * (n + 1) + rng.random() * 0.1) for n in range(metrics)]
            row[4] = str(step * 8)
            if late:
                row[0] = "NaN"
            if step == 5_000:
                row[2] = "Infinity"
            cells = [head + block(16, cell.encode()) for head, cell in zip(heads, row, strict=True)]
            cells += [
                block(2, b"_step") + block(16, str(step).encode()),
                block(2, b"_timestamp") + block(16, repr(1.75e9 + step * 0.31).encode()),
                block(2, b"_runtime") + block(16, repr(step * 0.31).encode()),
            ]
            rng.shuffle(cells)  # the order of a Go map
            body = b"".join(block(1, cell) for cell in cells)
            log.record(2, body + block(2, b"\x08" + varint(step)))
            log.record(3, body)
            log.record(3, block(1, block(2, b"_wandb") + block(2, b"runtime") + block(16, str(step).encode())))
            step += 1
        log.record(18, b"")


def ours(paths: list[Path], folder: Path, *, spill: bool) -> Read:
    """Ingest to rows in memory, or to Parquet parts; count the points."""
    from parts import write_rest  # noqa: PLC0415

    from forensics import registry  # noqa: PLC0415 - the peer must not pay for it
    from forensics.io.limits import DEFAULT  # noqa: PLC0415
    from forensics.io.reading import open_source  # noqa: PLC0415
    from forensics.model import Source  # noqa: PLC0415
    from forensics.store.fill import fill  # noqa: PLC0415

    readers = [i for i in registry.load("ingesters").ingesters if i.name == "wandb_run"]
    gc.set_threshold(200_000)  # as the command line does
    rows, sinks, started = 0, [], cpu_s()
    for number, path in enumerate(paths):
        source = Source(path.name, path.stat().st_size)
        place = folder / str(number)
        place.mkdir()
        sink, coverage = fill(open_source(path, source), source, readers, DEFAULT, place if spill else None)
        if spill:
            write_rest(sink, place)
        kept = [frame.height for table, frame in sink.frames().items() if table == "metrics"]
        rows += sum(kept) + sum(height for table, _, height in sink.parts if table == "metrics")
        assert coverage.skipped_bytes == 0
        sinks.append(sink)
    used = cpu_s() - started

    def sums() -> dict[str, list[int]]:
        import polars as pl  # noqa: PLC0415
        from checksums import joined, of  # noqa: PLC0415

        held = [sink.frames()["metrics"] for sink in sinks if "metrics" in sink.frames()]
        parts = [part for sink in sinks for table, part, _ in sink.parts if table == "metrics"]
        return joined([*map(of, held), *(of(pl.read_parquet(part)) for part in parts)])

    return {"points": rows, "work_s": used}, sums


def message_classes() -> Any:  # noqa: ANN401 - a module that a checker cannot see
    """The message classes of wandb without the package around them, which takes half a second to import."""
    here = str(Path(__file__).parent)
    sys.path[:] = [place for place in sys.path if place != here]  # this file has the name of the package
    found = find_spec("wandb")
    assert found is not None
    assert found.submodule_search_locations
    stub = types.ModuleType("wandb")
    stub.__path__ = list(found.submodule_search_locations)
    stub.__version__ = "0"
    sys.modules["wandb"] = stub
    return importlib.import_module("wandb.proto.wandb_internal_pb2")


def framed(data: bytes) -> Iterator[bytes]:
    """Records of a sound log, as the reader that older wandb packages carried cuts them."""
    at, held = 7, b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < _CHUNK.size:
            at += left
            continue
        crc, length, kind = _CHUNK.unpack_from(data, at)
        body = data[at + 7 : at + 7 + length]
        assert zlib.crc32(body, zlib.crc32(bytes([kind]))) == crc
        held += body
        at += 7 + length
        if kind in {1, 4}:
            yield held
            held = b""


def peer(paths: list[Path], folder: Path) -> Read:
    """Decode every record, then every item of a history row; keep the numbers."""
    del folder
    pb = message_classes()
    points, started = 0, cpu_s()
    logs: list[list[tuple[str, int, float]]] = []
    for path in paths:
        kept: list[tuple[str, int, float]] = []
        for payload in framed(path.read_bytes()):
            record = pb.Record()
            record.ParseFromString(payload)
            if record.WhichOneof("record_type") != "history":
                continue
            row = {(item.key or ".".join(item.nested_key)): json.loads(item.value_json) for item in record.history.item}
            kept += [
                (k, row["_step"], v) for k, v in row.items() if not k.startswith("_") and isinstance(v, float | int)
            ]
        points += len(kept)
        logs.append(kept)
    used = cpu_s() - started

    def sums() -> dict[str, list[int]]:
        import polars as pl  # noqa: PLC0415
        from checksums import joined, of  # noqa: PLC0415

        from forensics.dialects.names import canonical  # noqa: PLC0415

        found: list[dict[str, list[int]]] = []
        for kept in logs:
            names, steps, values = zip(*kept, strict=True)
            units = {name: float(canonical(name).scale) for name in set(names)}
            scaled = [float(value) * units[name] for name, value in zip(names, values, strict=True)]
            found.append(of(pl.DataFrame({"raw_name": names, "step": steps, "value": scaled})))
        return joined(found)

    return {"points": points, "work_s": used}, sums


READERS: dict[str, Callable[[list[Path], Path], Read]] = {
    "columns": lambda paths, folder: ours(paths, folder, spill=False),
    "parquet": lambda paths, folder: ours(paths, folder, spill=True),
    "peer": peer,
}


def cpu_s() -> float:
    """CPU seconds of this process, all threads."""
    return time.process_time()


def anonymous_mb() -> float:
    """Anonymous memory of this process now: what is held beyond the mapped file."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["RssAnon"].split()[0]) / 1024


def worker(name: str, paths: list[Path]) -> None:
    """Run one reader here and print its figures as JSON."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with tempfile.TemporaryDirectory() as folder:
        said, sums = READERS[name](paths, Path(folder))
        done.set()
        watcher.join()
        whole = resource.getrusage(resource.RUSAGE_SELF)
        figures = {"cpu_s": whole.ru_utime + whole.ru_stime, "peak_anonymous_mb": round(peak[0]), **said}
        sys.path.append(str(Path(__file__).parent))  # behind the packages: this file has the name of one
        print(json.dumps(figures | {"sums": sums()}))


def measured(name: str, paths: list[Path]) -> dict[str, Any]:
    """Figures of one reader in a process of its own."""
    command = [sys.executable, __file__, "--worker", name, *map(str, paths)]
    environment = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(run.stdout)


def compare(title: str, paths: list[Path]) -> None:
    """Print both readers and the ratio of their CPU seconds."""
    size = sum(path.stat().st_size for path in paths)
    figures = {name: measured(name, paths) for name in READERS}
    for name, said in figures.items():
        assert said["sums"] == figures["peer"]["sums"], f"{name} and the peer read different values"
        us = said["work_s"] / said["points"] * 1e6
        held = said["peak_anonymous_mb"]
        print(
            f"{title:16s} {name:7s} {said['work_s']:7.2f} CPU s  {size / 1e6 / said['work_s']:6.0f} MB/s"
            f"  {us:6.2f} us/point  {held:5d} MB held  {said['points']} points"
        )
    bound = 64 + 60 * figures["peer"]["points"] / 2**20
    ratios = {name: figures["peer"]["work_s"] / said["work_s"] for name, said in figures.items() if name != "peer"}
    told = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    print(f"{title:16s} times the peer's speed: {told}; memory bound {bound:.0f} MB", flush=True)


def main() -> None:
    """Make the logs, run the readers, print their figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=450)
    parser.add_argument("--metrics", type=int, default=50)
    parser.add_argument("--small", type=int, default=20)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--worker", nargs="+")
    args = parser.parse_args()
    if args.worker:
        worker(args.worker[0], [Path(path) for path in args.worker[1:]])
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        large = folder / f"run-large-{args.mb}-{args.metrics}.wandb"
        if not large.exists():
            write_log(large, args.mb * 1_000_000, args.metrics)
        compare(f"one of {args.mb} MB", [large])
        small = folder / "run-small.wandb"
        if not small.exists():
            write_log(small, 1_000_000, args.metrics)
        compare(f"{args.small} of 1 MB", [small] * args.small)


if __name__ == "__main__":
    main()
