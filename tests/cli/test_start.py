"""Nothing that lies in the folder where forensics is started is executed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What forensics, its libraries or Python's own library import; `__future__` and `typing` are imported by every file.
MODULES = ("__future__", "typing", "re", "gc", "json", "polars", "typer", "click", "rich", "orjson", "numpy", "plotly")
SAFE = (["-m", "forensics"], ["-P", "-m", "forensics"])


def hostile(folder: Path, *names: str) -> Path:
    """A run in whose folder modules lie that leave a mark when they are imported."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'a').write({name!r})\n", encoding="utf-8")
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n', encoding="utf-8")
    return folder


def started(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder.parent / "cache")}
    env.pop("PYTHONSAFEPATH", None)
    return subprocess.run([sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("start", SAFE, ids=" ".join)
@pytest.mark.parametrize("asked", [("--help",), ("triage", ".", "--format", "html"), ("doctor",)])
def test_no_module_of_the_working_folder_is_imported(tmp_path: Path, start: list[str], asked: tuple[str, ...]) -> None:
    run = hostile(tmp_path / "run", *MODULES)
    done = started(run, *start, *asked)
    assert done.returncode in (0, 3), done.stderr
    assert not (run / "ran").exists()


def test_the_safe_start_does_not_even_find_a_forensics_of_the_folder(tmp_path: Path) -> None:
    run = hostile(tmp_path / "run", "forensics", "importlib", "warnings")
    assert started(run, "-P", "-m", "forensics", "--help").returncode == 0
    assert not (run / "ran").exists()
