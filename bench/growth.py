"""How the cost of `triage` grows with its input: bytes of text, points of a table, files, ranks and restarts.

    python bench/growth.py [--only WORD] [--runs 1] [--small] [--keep DIR]

Every input is made here (seeded) and is judged in a process of its own. `CPU s` and `MB` are user and system time and
peak resident memory of the whole process, `reading` those of reading the same input into tables. `growth` is the ratio
of the CPU seconds above the smallest input's to the ratio of the sizes: 1 is linear, 2 at ten times the size is not.

Reading alone took, on two shared cores: CSV of 10^6 points 0.6 s, a small file 6 ms, a rank's log of 200 lines 27 ms,
100 MB of text 3.6 s. A peer's figures for the same inputs come from `commands.py`.
Restarts are compared with none of them, as the log is as long as before.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import commands

_READ = (
    "import gc,sys; gc.set_threshold(200_000)\n"
    "from pathlib import Path\n"
    "from forensics.pipeline import ingest_run\n"
    "ingest_run(Path(sys.argv[1]))"
)
_RANK_STEPS = 200
_FILE_STEPS = 20


@dataclass(frozen=True, slots=True)
class Growth:
    """What grows: `make` writes an input of that many `unit`s."""

    unit: str
    make: Callable[[Path, int], None]
    sizes: tuple[int, ...]


def line(rng: random.Random, step: int) -> str:
    """A step of a trainer in one line."""
    at = f"2026-01-{1 + step // 864_000 % 28:02d} {step // 36000 % 24:02d}:{step // 600 % 60:02d}:{step // 10 % 60:02d}"
    loss = 2 + 7 / (1 + step / 500) + rng.gauss(0, 0.02)
    return (
        f"[{at}] step: {step} | loss: {loss:.4f} | grad_norm: {1 + rng.random():.3f} | lr: 3.00e-04 | "
        f"tokens/s: {5000 + 50 * rng.random():.0f} | mem: 61.2GB\n"
    )


def write_text(place: Path, size_mb: int, restarts: int = 0) -> None:
    """One log of so many MB, every line a step; each restart goes back a hundred steps and says so."""
    rng, written, step, began = random.Random(5), 0, 0, 0
    each = size_mb * 1_000_000 // (restarts + 1)
    with (place / "train.log").open("w") as out:
        while written < size_mb * 1_000_000:
            written += out.write("".join(line(rng, at) for at in range(step, step + 1_000)))
            step += 1_000
            if restarts and written - began >= each:
                began, step = written, step - 100
                written += out.write(f"Resuming from checkpoint checkpoints/step_{step} at step {step}\n")


def write_restarts(place: Path, restarts: int) -> None:
    """A log of 10 MB in so many lives."""
    write_text(place, 10, restarts)


def write_table(place: Path, points: int) -> None:
    """One CSV of so many points, ten columns beside the step."""
    commands.make_csv(place, points / 1e6)


def write_events(place: Path, size_mb: int) -> None:
    """An event file of about so many MB, 20 tags a step."""
    commands.make_events(place, size_mb / 119)


def write_wandb(place: Path, size_mb: int) -> None:
    """A W&B log of so many MB, 50 metrics a step."""
    commands.make_wandb(place, size_mb / 100)


def write_files(place: Path, files: int) -> None:
    """So many small files, in turn a log, a table and a result of an evaluation."""
    for index in range(files):
        folder = place / f"part-{index // 500:03d}"
        folder.mkdir(exist_ok=True)
        rng, first = random.Random(index), index // 3 * _FILE_STEPS
        steps = range(first, first + _FILE_STEPS)
        if index % 3 == 0:
            (folder / f"log-{index:05d}.log").write_text("".join(line(rng, step) for step in steps))
        elif index % 3 == 1:
            rows = "".join(f"{step},{2 + rng.random():.4f},{rng.random():.3f}\n" for step in steps)
            (folder / f"metrics-{index:05d}.csv").write_text("step,loss,grad_norm\n" + rows)
        else:
            result = {"results": {f"task_{index % 7}": {"acc,none": rng.random(), "acc_stderr,none": 0.01}}}
            (folder / f"results_{index:05d}.json").write_text(json.dumps(result))


def write_ranks(place: Path, ranks: int) -> None:
    """A log of 200 steps for each rank; the last rank stops at step 150."""
    for rank in range(ranks):
        rng, steps = random.Random(rank), 150 if rank == ranks - 1 else _RANK_STEPS
        (place / f"rank_{rank}.log").write_text("".join(line(rng, step) for step in range(steps)))


GROWTHS = (
    Growth("MB of text", write_text, (1, 10, 100, 1_000)),
    Growth("points of CSV", write_table, (100_000, 1_000_000, 10_000_000)),
    Growth("MB of event files", write_events, (12, 119, 1_190)),
    Growth("MB of .wandb", write_wandb, (10, 100, 1_000)),
    Growth("files", write_files, (10, 100, 1_000, 10_000)),
    Growth("ranks", write_ranks, (8, 64, 512, 1_024)),
    Growth("restarts", write_restarts, (0, 14, 145, 1_450)),
)


def measure(growth: Growth, size: int, folder: Path, runs: int) -> tuple[float, float]:
    """Print the cost at one size; give the size and the CPU seconds."""
    place = folder / f"{growth.unit.replace(' ', '-')}-{size}"
    if not place.exists():
        place.mkdir()
        growth.make(place, size)
    out = folder / "out"
    ours = [sys.executable, "-m", "forensics", "triage", str(place), "--exit-zero"]
    reading_s, reading_mb, _ = commands.best([sys.executable, "-c", _READ, str(place)], out, runs)
    cpu_s, peak_mb, _ = commands.best(ours, out, runs)
    figures = f"{cpu_s:7.2f} CPU s {peak_mb:6.0f} MB   reading {reading_s:7.2f} CPU s {reading_mb:6.0f} MB"
    print(f"{size:>10,} {growth.unit:17} {figures}   {cpu_s / reading_s:4.1f} x", end="", flush=True)
    return size, cpu_s


def main() -> None:
    """Make the inputs, judge them, print costs and their growth."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="leave out the largest of each")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for growth in GROWTHS:
            if given.only not in growth.unit:
                continue
            least: float | None = None
            before: tuple[float, float] | None = None
            for size in growth.sizes[: -1 if given.small else None]:
                now = measure(growth, size, folder, given.runs)
                least = now[1] if least is None else least
                larger = before is not None and before[0] > 0 and before[1] > least
                if before is not None and larger:
                    ratio = (now[1] - least) / (before[1] - least) / (now[0] / before[0])
                    print(f"   growth {ratio:.2f}", end="")
                if growth.sizes[0] == 0 and size:
                    print(f"   {now[1] / least:.2f} of none", end="")
                print(flush=True)
                before = now


if __name__ == "__main__":
    main()
