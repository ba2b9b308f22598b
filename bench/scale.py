"""Reading on several processes, and again: wall time, CPU and peak memory for the logs of many ranks.

    python bench/scale.py [--ranks 512] [--lines 200] [--runs 3] [--log-mb 600] [--keep DIR]
    python bench/scale.py --fleet 100 1000 10000      # so many small runs in one place
    python bench/scale.py --job 512 4096              # logs and dumps of so many ranks, one of them late

Reads the same logs with one process and with two (`jobs`), in memory and into a store; reads the store again when
nothing changed and when one file did; and does all of it for ten times the lines. One log of `--log-mb` is read into a
store, in slices, by one process and by two. `wall` is that of the reading,
without the imports of the program that asks; `own` and `others` are CPU seconds of this process and of those that it
started. On a machine that does other work beside, wall time says little: with a core for each process it comes near
`own` and a half of `others`, where two share the work.
Every way gives the same rows, or the bench ends with exit code 1; so it does where the late rank of a job is not the
culprit. What grows ten and a hundred times is seen by giving several sizes: CPU seconds for each run or rank should
stay, and the MB of a fleet, too.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import growth

_READ = """
import gc, json, resource, sys, time
gc.set_threshold(200_000)
from pathlib import Path
import polars as pl
from forensics import registry
from forensics.pipeline import ingest_run
from forensics.scale.choice import Spread
registry.load("ingesters"), registry.load("dialects")

def spent(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime

run, store, jobs = Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2] else None, int(sys.argv[3])
wall, own = time.monotonic(), spent(resource.RUSAGE_SELF)
read = ingest_run(run, store=store, spread=Spread(jobs=jobs))
wall, own = time.monotonic() - wall, spent(resource.RUSAGE_SELF) - own
rows = read.scan("metrics").select(pl.len(), pl.col("value").sum()).collect().row(0)
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e3
print(json.dumps({"wall": wall, "own": own, "others": spent(resource.RUSAGE_CHILDREN), "peak_mb": peak, "rows": rows}))
"""


_LOSS = re.compile(r"loss: \S+")
_NO_MEMORY = """Traceback (most recent call last):
  File "train.py", line 88, in <module>
    step()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of \
which 1.20 GiB is free.
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one reading took: seconds, and MB of the largest process."""

    wall: float
    own: float
    others: float
    peak_mb: float
    rows: list[float]


def write_ranks(place: Path, ranks: int, lines: int) -> None:
    """A log of so many steps for each rank."""
    place.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        rng = growth.random.Random(rank)
        (place / f"rank_{rank}.log").write_text("".join(growth.line(rng, step) for step in range(lines)))


def read(run: Path, store: Path | None, jobs: int) -> Cost:
    """Read a run in a process of its own, whose modules are compiled once and kept."""
    command = [sys.executable, "-c", _READ, run, store or "", str(jobs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=growth.commands.compiled())
    return Cost(**json.loads(done.stdout))


def best(run: Path, store: Path | None, jobs: int, runs: int, *, fresh: bool = True) -> Cost:
    """The quickest of several readings."""
    found: list[Cost] = []
    for _ in range(runs):
        if fresh and store is not None:
            shutil.rmtree(store, ignore_errors=True)
        found.append(read(run, store, jobs))
    return min(found, key=lambda cost: cost.wall)


def told(name: str, cost: Cost, than: Cost | None = None) -> None:
    """Print one line."""
    faster = f"  {than.wall / cost.wall:4.2f} times as fast" if than is not None else ""
    seconds = f"wall {cost.wall:6.2f}  own {cost.own:6.2f}  others {cost.others:6.2f} s"
    print(f"{name:<34} {seconds}  {cost.peak_mb:5.0f} MB{faster}", flush=True)


def measure(run: Path, store: Path, runs: int) -> bool:
    """Read a run in every way; false when the rows are not the same."""
    alone = best(run, None, 1, runs)
    told("in memory, one process", alone)
    two = best(run, None, 2, runs)
    told("in memory, two processes", two, alone)
    kept = best(run, store, 1, runs)
    told("into a store, one process", kept)
    kept_by_two = best(run, store, 2, runs)
    told("into a store, two processes", kept_by_two, kept)
    again = best(run, store, 1, runs, fresh=False)
    told("again, nothing changed", again, kept)
    every = {json.dumps(cost.rows[:1]) for cost in (alone, two, kept, kept_by_two, again)}
    with next(run.glob("*.log")).open("a") as log:
        log.write(growth.line(growth.random.Random(0), 10_000_000))
    told("again, one file changed", read(run, store, 1), kept)
    return len(every) == 1


def measure_log(run: Path, store: Path, size_mb: int) -> bool:
    """Read one large log in slices; false when the rows are not the same."""
    run.mkdir(parents=True, exist_ok=True)
    growth.write_text(run, size_mb)
    print(f"one log of {size_mb} MB")
    alone = best(run, store, 1, 1)
    told("in slices, one process", alone)
    two = best(run, store, 2, 1)
    told("in slices, two processes", two, alone)
    return alone.rows == two.rows


def write_fleet(place: Path, runs: int) -> None:
    """So many runs of one log of 40 steps and one configuration; of five, one ends in NaN and one without memory."""
    for number in range(runs):
        folder = place / f"exp-{number:05d}"
        folder.mkdir(parents=True)
        rng = growth.random.Random(number)
        lines = [growth.line(rng, step) for step in range(40)]
        if number % 5 == 1:
            lines[30:] = [_LOSS.sub("loss: nan", line) for line in lines[30:]]
        (folder / "train.log").write_text("".join(lines) + (_NO_MEMORY if number % 5 == 2 else ""))
        (folder / "config.json").write_text(json.dumps({"lr": 3e-4, "seed": number, "max_steps": 40}))


def write_job(place: Path, ranks: int) -> None:
    """Two logs and a dump of each rank; the rank at three quarters never entered the last collective."""
    maker = Path(__file__).parents[1] / "fixtures" / "make" / "hang_files.py"
    subprocess.run([sys.executable, maker, place, "--ranks", str(ranks), "--culprit", str(_late(ranks))], check=True)


def _late(ranks: int) -> int:
    return ranks * 3 // 4


def judge(place: Path, top: Path, size: int, unit: str) -> dict[str, Any]:
    """Judge a place in a process of its own, print what each of its runs or ranks costs, and give the document."""
    out = top / "out.json"
    ours = [sys.executable, "-m", "forensics", "triage", str(place), "--jobs", "1", "-f", "json", "--exit-zero"]
    cpu_s, peak_mb, _ = growth.commands.best([*ours, "--force", "-o", str(out)], top / "said", 1)
    print(f"{size:>7,} {unit}  {cpu_s:8.1f} CPU s  {1e3 * cpu_s / size:6.1f} ms each  {peak_mb:6.0f} MB", flush=True)
    return json.loads(out.read_text())


def measure_grown(asked: argparse.Namespace, top: Path) -> bool:
    """Judge fleets and jobs of the sizes that were asked for; false where an answer is wrong."""
    right = True
    for runs in asked.fleet:
        place = top / f"fleet-{runs}"
        write_fleet(place, runs)
        right &= len(judge(place, top, runs, "runs")["runs"]) == runs
    for ranks in asked.job:
        place = top / f"job-{ranks}"
        write_job(place, ranks)
        right &= judge(place, top, ranks, "ranks")["verdict"]["culprits"] == [_late(ranks)]
    return right


def main() -> int:
    """Make the logs, read them in every way, and print what it took."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=512)
    options.add_argument("--lines", type=int, default=200)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--log-mb", type=int, default=600)
    options.add_argument("--keep", type=Path)
    options.add_argument("--fleet", type=int, nargs="+", default=())
    options.add_argument("--job", type=int, nargs="+", default=())
    asked = options.parse_args()
    same = True
    with tempfile.TemporaryDirectory() as scratch:
        top = asked.keep or Path(scratch)
        if asked.fleet or asked.job:
            return 0 if measure_grown(asked, top) else 1
        for times in (1, 10):
            run = top / f"run-{times}"
            write_ranks(run, asked.ranks, asked.lines * times)
            size_mb = sum(path.stat().st_size for path in run.iterdir()) / 1e6
            print(f"{asked.ranks} ranks of {asked.lines * times} lines, {size_mb:.0f} MB")
            same &= measure(run, top / f"store-{times}", asked.runs)
        same &= measure_log(top / "log", top / "store-log", asked.log_mb)
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
