"""What it costs to start: `forensics --help` and a small triage, as ratios to `python -c pass` and to what it imports.

A triage needs polars and numpy: importing these two alone is the least that it can cost.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 9


def cpu_s(command: list[str]) -> float:
    """CPU seconds (user + system) of a child process, the minimum over `RUNS` runs."""
    best = float("inf")
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=False, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    """Print the ratios."""
    run = ROOT / "fixtures" / "runs" / "nan-blowup-kempnerforge"
    bare, least = (cpu_s([sys.executable, "-c", code]) for code in ("pass", "import polars, numpy"))
    for name, arguments in {"forensics --help": ["--help"], "forensics triage": ["triage", str(run)]}.items():
        spent = cpu_s([sys.executable, "-m", "forensics", *arguments])
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "forensics", *arguments], check=False, capture_output=True)
        ratios = f"{spent / bare:.1f} x python -c pass, {spent / least:.2f} x import polars, numpy"
        print(f"{name}: {spent:.2f} CPU s, {ratios}; {time.perf_counter() - begun:.2f} s wall")


if __name__ == "__main__":
    main()
