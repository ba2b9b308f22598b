"""How fast a text log is read: metrics typed into Parquet and every error signature with its line, beside plain search.

    python bench/text_log.py [--mb 1000] [--keep DIR]

Three made-up logs (seeded): `few`, a line of three numbers in every eighteen; `mixed`, one of eight numbers in every
twenty; and `dense`, every line one of eight. Each reader runs in a process of its own with one thread; CPU time and
peak anonymous memory are those of that process.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import polars as pl
from checksums import Sums, joined, of
from parts import write_rest

from forensics import registry
from forensics.io.limits import DEFAULT
from forensics.io.reading import open_source
from forensics.model import Source
from forensics.store.fill import fill

_PIECE_LINES = 40_000
#: Lines of which one is a metric line.
_EVERY = {"few": 18, "mixed": 20, "dense": 1}


def metric_line(rng: random.Random, step: int) -> str:
    """One line as a trainer prints it."""
    loss, norm, speed = (
        2 + 7 / (1 + step / 500) + rng.gauss(0, 0.02),
        rng.uniform(0.5, 1.5),
        rng.randint(40_000, 44_000),
    )
    return (
        f"[rank 0] INFO     [step {step}] loss={loss:.4f} | lr=3.00e-04 | grad_norm={norm:.3f} | tok/s={speed:,} | "
        f"mfu={rng.uniform(17, 19):.1f}% | mem={rng.uniform(2, 3):.1f}/80GB | step_time={rng.uniform(0.14, 0.16):.2f}s"
    )


def short_line(rng: random.Random, step: int) -> str:
    """One line as a small trainer prints it."""
    loss = 2 + 7 / (1 + step / 500) + rng.gauss(0, 0.02)
    return f"iter {step}: loss {loss:.4f}, time {rng.uniform(200, 260):.2f}ms, mfu {rng.uniform(17, 45):.2f}%"


def other_line(rng: random.Random, step: int) -> str:
    """Lines between: loader, cache, progress bars, warnings; once in a while an error that was survived."""
    kind = rng.random()
    clock = f"{step // 60 % 60:02d}:{step % 60:02d}"
    if kind < 0.5:
        read = f"worker {step % 8} read shard {rng.randint(0, 99_999)} in {rng.random():.4f} s"
        return f"2031-05-06 07:{clock},{rng.randint(0, 999):03d} INFO loader: {read}"
    if kind < 0.8:
        bar = "#" * (step % 10)
        rate = rng.uniform(5, 9)
        return f"Reading shards:  {step % 100}%|{bar:10s}| {step % 1000}/1000 [{clock}<{clock}, {rate:.2f}it/s]"
    if kind < 0.999:
        word = rng.choice(("hit", "miss"))
        return (
            f"[rank {rng.randint(0, 7)}] DEBUG    cache {word} for block {rng.getrandbits(48):012x}, {step % 64} pages"
        )
    return f"[rank {rng.randint(0, 7)}]: RuntimeError: retry {rng.randint(1, 3)}: Connection reset by peer"


def write_log(path: Path, kind: str, size_bytes: int) -> None:
    """Write a log of about `size_bytes`; pieces of 40,000 lines are made once and repeated with growing steps."""
    rng = random.Random(7)
    every = _EVERY[kind]
    line = short_line if kind == "few" else metric_line
    written, step = 0, 0
    with path.open("w", encoding="utf-8") as out:
        while written < size_bytes:
            lines: list[str] = []
            for number in range(_PIECE_LINES):
                step += number % every == 0
                lines.append(line(rng, step) if number % every == 0 else other_line(rng, step))
            written += out.write("\n".join(lines) + "\n")


def ours(path: Path) -> dict[str, object]:
    """Ingest to Parquet parts; count the rows."""
    gc.set_threshold(200_000)  # as the command line does
    with tempfile.TemporaryDirectory() as folder:
        source = Source(path.name, path.stat().st_size)
        text = [i for i in registry.load("ingesters").ingesters if i.name == "text_log"]
        started = cpu_s()
        sink, coverage = fill(open_source(path, source), source, text, DEFAULT, Path(folder))
        write_rest(sink, Path(folder))
        used = cpu_s() - started
        rows = {}
        for table, _, height in sink.parts:
            rows[table] = rows.get(table, 0) + height
        metrics = [part for table, part, _ in sink.parts if table == "metrics"]
        sums = joined([of(pl.read_parquet(part).filter(pl.col("raw_name") == "loss")) for part in metrics])
    return {
        "rows": rows,
        "read_bytes": coverage.read_bytes,
        "dialects": coverage.format,
        "work_s": used,
        "sums": sums,
    }


def python_re(path: Path) -> dict[str, object]:
    """One compiled pattern for each line, as most scripts do."""
    pattern = re.compile(rb"\[step (\d+)\] loss=(\S+)|Error|Traceback|out of memory")
    started = cpu_s()
    with path.open("rb") as lines:
        hits = sum(1 for line in lines if pattern.search(line))
    used = cpu_s() - started
    return {"rows": {"lines": hits}, "work_s": used, "sums": losses(path)}


def losses(path: Path) -> Sums:
    """Checksums of steps and losses, line by line."""
    pattern = re.compile(rb"(?:\[step (\d+)\] loss=|iter (\d+): loss )([\d.naif-]+)")
    with path.open("rb") as lines:
        found = [match.groups() for line in lines if (match := pattern.search(line))]
    cells = [("loss", int(one or other), float(value)) for one, other, value in found]
    return of(pl.DataFrame(cells, schema=["raw_name", "step", "value"], orient="row"))


def cpu_s() -> float:
    """CPU seconds of this process and its children."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(r.ru_utime + r.ru_stime for r in both)


def peak_anonymous_mb() -> float:
    """Anonymous memory of this process now; sampled by the parent for its peak."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(fields["RssAnon"].split()[0]) / 1024


def worker(name: str, path: Path) -> None:
    """Run one reader here and print its figures as JSON."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], peak_anonymous_mb())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = cpu_s()
    if name in {"ours", "python_re"}:
        said = {"ours": ours, "python_re": python_re}[name](path)
    else:
        subprocess.run(
            [*name.split(), str(path)], stdout=subprocess.PIPE, check=False
        )  # grep stops early for the null device
        said: dict[str, object] = {}
    used = said.get("work_s", cpu_s() - started)  # checksums are taken afterwards
    done.set()
    watcher.join()
    print(json.dumps({"cpu_s": used, "peak_anonymous_mb": round(peak[0]), **said}))


def main() -> None:
    """Make the logs, run the readers, print MB per CPU second and the ratio to plain search."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--worker", nargs=2)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker[0], Path(args.worker[1]))
        return
    search = "rg -c loss" if shutil.which("rg") else "grep -c loss"
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        for kind in _EVERY:
            path = folder / f"{kind}-{args.mb}.log"
            if not path.exists():
                write_log(path, kind, args.mb * 1_000_000)
            figures: dict[str, float] = {}
            read: list[Sums] = []
            for name in (search, "ours", "python_re"):
                if args.only not in name:
                    continue
                command = [sys.executable, __file__, "--worker", name, str(path)]
                environment = {
                    "POLARS_MAX_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": "1",
                    "PATH": "/usr/bin:/bin:/usr/local/bin",
                }
                run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                said = json.loads(run.stdout)
                read += [said.pop("sums")] if "sums" in said else []
                assert all(sums == read[0] for sums in read), f"{name} reads other steps or losses"
                figures[name] = path.stat().st_size / 1e6 / said["cpu_s"]
                ratio = figures[name] / figures.get(search, float("nan"))
                print(f"{kind:6s} {name:12s} {figures[name]:7.0f} MB/s  {ratio:6.3f} of `{search}`  {said}", flush=True)


if __name__ == "__main__":
    main()
