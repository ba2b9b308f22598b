"""How fast event files are read, with every checksum verified: points as columns, and whole into Parquet.

    python bench/tensorboard.py [--mb 120] [--keep DIR] [--small 100]

Data is made up (seeded). Each reader runs in a process of its own with one thread where that can be chosen; CPU time is
that of the process after its imports, of the data server that of its load. Beside ours: tensorboard's accumulator with
every scalar kept, and its data server, which keeps a thousand points of a tag, with `--checksum`. Points, steps and
values of each tag must be the same in all readers but the data server.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checksums
import polars as pl
from generate_tfevents import write
from parts import write_rest

from forensics import registry
from forensics.dialects.names import canonical
from forensics.io.limits import DEFAULT
from forensics.io.reading import open_source
from forensics.model import Source
from forensics.store.fill import fill
from forensics.store.sink import SourceSink

sys.path.pop(0)  # this folder: in it, this file would be taken for the package of its name
NAME = "events.out.tfevents.1750000000.node-a.1.0"


class Counted(SourceSink):
    """Takes columns and keeps none: the cost of reading alone."""

    points = 0
    kept: list[pl.DataFrame] | None = None

    def rows(self, table: str, columns: Any) -> None:  # noqa: ANN401 - the sink's own
        """Count, and keep where somebody asks for the rows."""
        if table == "metrics":
            self.points += columns.height
            if self.kept is not None:
                self.kept.append(columns)


def ours_columns(folder: Path) -> dict[str, Any]:
    """Read all files below a folder into columns."""
    from forensics.formats.tfevents.reader import read  # noqa: PLC0415 - a worker imports its own reader

    points = 0
    for path, source in sources(folder):
        sink = Counted(source)
        with open_source(path, source) as opened:
            read(opened, sink, DEFAULT)
        points += sink.points
    return {"points": points, "sums": lambda: checksums.joined([_sums(*one) for one in sources(folder)])}


def _sums(path: Path, source: Source) -> checksums.Sums:
    """Checksums of one file, read once more."""
    from forensics.formats.tfevents.reader import read  # noqa: PLC0415 - a worker imports its own reader

    sink = Counted(source)
    sink.kept = []
    with open_source(path, source) as opened:
        read(opened, sink, DEFAULT)
    return checksums.of(pl.concat([frame.select("raw_name", "step", "value") for frame in sink.kept]))


def ours_parquet(folder: Path) -> dict[str, Any]:
    """Fill a store with them, as the pipeline does."""
    readers = [i for i in registry.load("ingesters").ingesters if i.name == "tfevents"]
    points, started = 0, cpu_s()
    with tempfile.TemporaryDirectory() as store:
        for number, (path, source) in enumerate(sources(folder)):
            parts = Path(store) / str(number)
            parts.mkdir()
            sink, _ = fill(open_source(path, source), source, readers, DEFAULT, parts)
            write_rest(sink, parts)
            points += sum(rows for table, _, rows in sink.parts if table == "metrics")
        used = cpu_s() - started
        sums = [checksums.of(pl.read_parquet(part)) for part in sorted(Path(store).rglob("metrics-*.parquet"))]
    return {"points": points, "cpu_s": used, "sums": lambda: checksums.joined(sums)}


def accumulator(folder: Path) -> dict[str, Any]:
    """Every scalar with tensorboard's own reader."""
    module: Any = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    points, started = 0, cpu_s()
    every: list[Any] = []
    for path, _ in sources(folder):
        found = module.EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
        points += sum(len(found.Scalars(tag)) for tag in found.Tags()["scalars"])
        every.append(found)
    used = cpu_s() - started
    return {"points": points, "cpu_s": used, "sums": lambda: checksums.joined([_peer_sums(one) for one in every])}


def _peer_sums(found: Any) -> checksums.Sums:  # noqa: ANN401 - the peer's own
    """Checksums of what the accumulator holds, in our units."""
    rows = [
        (tag, p.step, p.value * canonical(tag).scale) for tag in found.Tags()["scalars"] for p in found.Scalars(tag)
    ]
    return checksums.of(pl.DataFrame(rows, schema=["raw_name", "step", "value"], orient="row"))


def data_server(folder: Path) -> dict[str, Any]:
    """One load with the data server, until it says that it is done."""
    program = Path(importlib.import_module("tensorboard_data_server").server_binary())
    command = [str(program), "--logdir", str(folder), "--reload", "once", "--checksum", "-v", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if "Finished load cycle" in line:
                break
        ticks = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        server.kill()
    return {"points": None, "cpu_s": (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")}


READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "ours, columns": ours_columns,
    "ours, Parquet": ours_parquet,
    "EventAccumulator": accumulator,
    "data server --checksum": data_server,
}


def sources(folder: Path) -> list[tuple[Path, Source]]:
    """Event files below a folder."""
    return [(p, Source(p.name, p.stat().st_size)) for p in sorted(folder.rglob("*tfevents*"))]


def cpu_s() -> float:
    """CPU seconds (user + system) of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def anonymous_mb() -> float:
    """Resident memory of this process beyond mapped files, now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["RssAnon"].split()[0]) / 1024


def worker(name: str, folder: Path) -> None:
    """Run one reader here and print its figures."""
    importlib.import_module("polars")
    importlib.import_module("numpy")
    before, peak, done = anonymous_mb(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], anonymous_mb())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    started = cpu_s()
    said = READERS[name](folder)
    used = cpu_s() - started
    done.set()
    watcher.join()
    sums = said.pop("sums", dict)()
    print(json.dumps({"cpu_s": used, "grown_mb": max(peak[0] - before, 0), **said, "sums": sums}))


def compare(title: str, folder: Path, names: list[str]) -> None:
    """Run the readers one after the other and print their figures and ratios."""
    size = sum(source.size_bytes for _, source in sources(folder)) / 1e6
    print(f"{title}: {size:.0f} MB in {len(sources(folder))} files")
    figures: dict[str, float] = {}
    first: checksums.Sums = {}
    points = 0
    for name in names:
        command = [sys.executable, __file__, "--worker", name, str(folder)]
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        said = json.loads(
            subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
        )
        points = points or said["points"]
        first = first or said["sums"]
        told = checksums.differences(first, said["sums"]) if said["sums"] else []
        assert not told, f"{name} and {names[0]} read different values of {told}"
        figures[name] = said["cpu_s"]
        memory = f"{said['grown_mb']:6.0f} MB grown" if said["points"] is not None else ""
        each = said["cpu_s"] / points * 1e6
        print(f"  {name:24} {said['cpu_s']:7.2f} CPU s {size / said['cpu_s']:7.0f} MB/s {each:7.3f} us/point {memory}")
    for ours in (name for name in names if name.startswith("ours")):
        for other in (name for name in names if not name.startswith("ours")):
            print(f"  {ours}: {figures[other] / figures[ours]:.1f} x {other}")


def main() -> None:
    """Make the files, run the readers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=120)
    parser.add_argument("--small", type=int, default=100)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--without", default="", help="leave out readers whose name contains this")
    parser.add_argument("--worker", nargs=2)
    given = parser.parse_args()
    if given.worker:
        worker(given.worker[0], Path(given.worker[1]))
        return
    names = [name for name in READERS if not given.without or given.without not in name]
    with tempfile.TemporaryDirectory() as temporary:
        place = given.keep or Path(temporary)
        for order, size in (("regular", given.mb), ("irregular", given.mb / 4)):
            folder = place / f"{order}-{size:g}"
            if not folder.exists():
                folder.mkdir(parents=True)
                write(folder / NAME, int(size * 1e6), 20, order)
            compare(f"one {order} file", folder, names)
        for order in ("regular", "irregular"):
            folder = place / f"small-{order}-{given.small}"
            if not folder.exists():
                for number in range(given.small):
                    (folder / f"run-{number:03d}").mkdir(parents=True)
                    write(folder / f"run-{number:03d}" / NAME, 1_000_000, 12, order, seed=number)
            compare(f"small {order} files", folder, [name for name in names if name.startswith("ours")])


if __name__ == "__main__":
    main()
