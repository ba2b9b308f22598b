"""Small runs, written file by file, and what triage says of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from forensics import triage
from forensics.api import Report
from forensics.model import Outcome, Shape, Verdict

DONE = "training finished"
TRACEBACK = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    main()")
Files = Mapping[str, str | Iterable[str]]


def write(place: Path, files: Files) -> Path:
    """Write files by their paths, lines with their ends; gives the folder."""
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else "\n".join(text) + "\n", encoding="utf-8")
    return place


def judged(place: Path, files: Files, baseline: Files | None = None) -> Report:
    """Judge a run of these files, beside a baseline of those."""
    base = None if baseline is None else write(place / "base", baseline)
    return triage(write(place / "run", files), baseline=base, figures=False)


def said(place: Path, lines: Iterable[str]) -> Verdict:
    """Judge a run of one log."""
    return judged(place, {"train.log": lines}).verdict


def shape(verdict: Verdict) -> tuple[Outcome, Shape | None]:
    """Give the outcome and the shape."""
    return verdict.outcome, verdict.shape


def falling(first: int, last: int, words: str = "step {at} | loss: {loss:.4f}", top: float = 3.0) -> list[str]:
    """Lines of the steps `first` to `last` of a loss that falls by a hundredth a step, with a little noise."""
    noise = random.Random(first)
    return [words.format(at=at, loss=top - 0.01 * at + 0.03 * noise.random()) for at in range(first, last + 1)]
