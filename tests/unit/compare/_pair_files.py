"""Two runs from the files that they left, and the makers of such pairs."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

from forensics.compare.config.audit import Audit, audit
from forensics.pipeline import ingest_run

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "fixtures" / "make"))


def maker(name: str) -> ModuleType:
    return importlib.import_module(name)


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def compared(tmp_path: Path, good: dict[str, str], bad: dict[str, str]) -> Audit:
    return audit(ingest_run(write(tmp_path / "good", good)), ingest_run(write(tmp_path / "bad", bad)))


def scored(tmp_path: Path, name: str, count: int, seed: int) -> Counter[str]:
    """How often the injected cause of a pair comes first, in the first three, and how often one is claimed of none."""
    made = maker(name)
    score = Counter[str]()
    for number, (cause, _, good, bad) in enumerate(made.pairs(count, seed)):
        found = [d.family for d in compared(tmp_path / str(number), good, bad).causes]
        wanted = made.CAUSES[cause]
        score["pairs" if wanted else "without"] += 1
        score["first"] += wanted is not None and found[:1] == [wanted]
        score["in three"] += wanted is not None and wanted in found[:3]
        score["claimed of nothing"] += wanted is None and bool(found)
    return score
