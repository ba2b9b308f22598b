"""What it costs to start: `forensics --help` and a small triage, as ratios to `python -c pass` and to what it imports.

A triage needs polars and numpy: importing these two alone is the least that it can cost. Modules are compiled in the
first of the runs, as they are when a package is installed; where nothing may be kept, each start costs twice as much.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 9


def cpu_s(command: list[str], env: dict[str, str]) -> float:
    """CPU seconds (user + system) of a child process, the minimum over `RUNS` runs."""
    best = float("inf")
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=False, capture_output=True, env=env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def compiled_in(folder: str) -> dict[str, str]:
    """Give an environment in which modules are compiled once, into `folder`."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": folder}


def main() -> None:
    """Print the ratios."""
    run = ROOT / "fixtures" / "runs" / "nan-blowup-kempnerforge"
    with tempfile.TemporaryDirectory() as folder:
        env = compiled_in(folder)
        bare, least = (cpu_s([sys.executable, "-c", code], env) for code in ("pass", "import polars, numpy"))
        for name, arguments in {"forensics --help": ["--help"], "forensics triage": ["triage", str(run)]}.items():
            command = [sys.executable, "-m", "forensics", *arguments]
            spent = cpu_s(command, env)
            begun = time.perf_counter()
            subprocess.run(command, check=False, capture_output=True, env=env)
            ratios = f"{spent / bare:.1f} x python -c pass, {spent / least:.2f} x import polars, numpy"
            print(f"{name}: {spent:.2f} CPU s, {ratios}; {time.perf_counter() - begun:.2f} s wall")


if __name__ == "__main__":
    main()
