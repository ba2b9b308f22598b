"""Logs that end in the middle: by a kill that nobody printed, or cut afterwards; what is still shown decides."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

from faults.row import FAILED, NONE, PLAIN, Facts, Fault, needs, of

_OPEN = "cannot_say|suspect"
#: Shares of a log's bytes that may be left, so that its last lines are gone.
_LEFT = (0.25, 0.9)
#: What is left open where the evidence is gone.
_UNTOLD: dict[str, Any] = {
    "outcome": _OPEN, "shape": NONE, "causes": (), "says": (), "onset": None, "culprits": None, "checkpoint": None,
}  # fmt: skip


def _logs(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.suffix in {".log", ".out", ".err"})


def cut(_job: Any, place: Path, _facts: Facts, rng: random.Random) -> dict[str, Any]:
    """Every log loses the same share of its end."""
    share = rng.uniform(*_LEFT)
    for log in _logs(place):
        os.truncate(log, int(log.stat().st_size * share))
    return {}


def cut_nan(_job: Any, place: Path, facts: Facts, rng: random.Random) -> dict[str, Any]:
    """A cut before the first record that is not finite leaves nothing to say."""
    log = next(path for path in _logs(place) if path.suffix != ".err")
    kept = int(log.stat().st_size * rng.uniform(*_LEFT))
    os.truncate(log, kept)
    bad = [one for one in of(facts, "shown") if not float(one["loss"]) == float(one["loss"])]  # noqa: SIM201 - NaN
    return {} if any(one["log_bytes"] <= kept for one in bad) else _UNTOLD


def cut_traceback(_job: Any, place: Path, _facts: Facts, rng: random.Random) -> dict[str, Any]:
    """A cut inside a traceback leaves a crash without its error, a cut before it nothing."""
    mark = b"Traceback (most recent call last)"
    log = next(path for path in _logs(place) if mark in path.read_bytes())
    text = log.read_bytes()
    begins = text.index(mark)
    kept = (
        rng.randrange(begins + len(mark) + 2, len(text) - 40)
        if rng.random() < 0.5
        else int(begins * rng.uniform(*_LEFT))
    )
    os.truncate(log, kept)
    if kept > begins:
        return {"causes": (), "says": (), "outcome": "failed"}
    return _UNTOLD


ROWS = (
    Fault("cut-kill", _OPEN, NONE, onset=False, ends="unfinished"),
    Fault("cut-term", _OPEN, NONE, onset=False, ends="unfinished", trainers=PLAIN),
    Fault("cut-segv", _OPEN, NONE, onset=False, ends="unfinished", trainers=PLAIN),
    Fault("cut-fine", _OPEN, NONE, onset=False, bare=True, ends="done", trainers=PLAIN, after=cut),
    Fault("cut-nan", FAILED, "nan", ("data_or_numerics", "bad_sample", "loss_nonfinite", "gradient_nonfinite"), ("data", "batch", "sample"),
          needs("hidden"), bare=True, ends="done", trainers=PLAIN, after=cut_nan),
    Fault("cut-crash", FAILED, "crash", needs=needs("before"), bare=True, ends="failed", trainers=PLAIN, after=cut_traceback),
)  # fmt: skip
