"""Slowdowns: steps take longer from one on, or time is lost beside them."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from faults.row import SOFT, Facts, Fault, needs, of

#: A slowdown shows when its steps take this much longer on average, with so many records on both sides of its onset.
SLOWER, FEWEST = 1.25, 8
#: Loops that print neither how long a step took nor when; a file of metrics does.
_UNTIMED = frozenset(("dict",))


def slower(job: Any, facts: Facts, _codes: list[int]) -> str:
    """A slowdown shows in the times that were logged; trainers that log none show it in their time stamps."""
    if job.trainer in _UNTIMED and not job.stores:
        return "no time was logged"
    logged = [one for one in of(facts, "shown") if one["dt"] is not None]
    if not logged:
        return ""
    before = [one["dt"] for one in logged if one["shown"] <= job.at][2:]
    after = [one["dt"] for one in logged if one["shown"] > job.at]
    if min(len(before), len(after)) < FEWEST:
        return f"fewer than {FEWEST} records on one side of the onset"
    return "" if sum(after) / len(after) > SLOWER * sum(before) / len(before) else "the steps did not become slower"


def timed(job: Any, _facts: Facts, _codes: list[int]) -> str:
    """Whether anything tells the time."""
    return "no time was logged" if job.trainer in _UNTIMED and not job.stores else ""


def within_ramp(job: Any, _place: Path, _facts: Facts, _rng: random.Random) -> dict[str, Any]:
    """A ramp begins where nobody sees it: its onset is open until the steps are slower by what counts as slower."""
    share = (SLOWER - 1) / (job.numbers["times"] - 1)
    return {"within": max(job.log_every, math.ceil(share * (job.steps - job.at)))}


ROWS = (
    Fault("slow-loader", SOFT, "slowdown", ("slow_steps", "dataloader"), ("data", "loader", "input", "profile"), ranks=(1, 1, 2), ends="done",
          numbers={"times": (2.2, 4.0)}, shown=slower),
    Fault("slow-pauses", SOFT, "slowdown", ("stalls", "periodic_pauses"), ("pause", "stall", "checkpoint", "loader", "garbage"), ends="done",
          numbers={"every": (7, 13), "seconds": (0.25, 0.5)}, shown=slower),
    Fault("slow-ramp", SOFT, "slowdown", ("slow_ramp", "slow_steps"), ("grow", "cache", "list", "profile", "data"), ends="done",
          numbers={"times": (2.5, 4.0)}, shown=slower, after=within_ramp),
    # it recovers: time was lost, and nothing is wrong at the end
    Fault("slow-transient", "healthy|suspect|failed", "none|slowdown", onset=False, ranks=(1, 1, 2), ends="done", begins=(0.35, 0.45),
          numbers={"times": (3.0, 5.0), "share": (0.2, 0.3)}, shown=slower),
    Fault("slow-twice", SOFT, "slowdown", ("slow_steps", "slow_ramp"), ("data", "loader", "input", "profile", "host"), ends="done", steps=(120, 220),
          begins=(0.3, 0.4), numbers={"times": (1.8, 2.2)}, shown=slower),
    # far slower, as four ranks on two cores are slow by themselves; every rank waits for it, so which it is shows only
    # where each says how long its own work took
    Fault("slow-straggler", SOFT, "slowdown", ("straggler", "slow_steps"), ("rank", "host", "device", "profile"), ranks=(2, 4), ends="done",
          numbers={"times": (5.0, 8.0)}, shown=slower),
    Fault("slow-straggler-told", SOFT, "slowdown", ("straggler",), ("rank", "host", "device"), ranks=(2, 4), culprit=True, ends="done",
          trainers=("logging",), numbers={"times": (5.0, 8.0)}, shown=slower),
    # each evaluation takes longer than the one before
    Fault("slow-evals", SOFT, "slowdown", ("slow_evaluations", "periodic_pauses", "stalls"), ("eval",), needs("evaluating"), onset=False, eval_every=(8, 10), ends="done",
          numbers={"seconds": (1.2, 2.0)}, shown=timed),
    Fault("slow-saves", SOFT, "slowdown", ("periodic_pauses", "stalls"), ("checkpoint", "save"), needs("saving"), onset=False, ends="done",
          numbers={"seconds": (0.8, 1.4)}, shown=timed),
)  # fmt: skip
