"""OOM028 creeps-near-capacity: memory rises a little, on a device that is almost full.

What it detects: device memory whose highest value rises, ever faster, within the last twentieth of the device.

Why it matters: a rise of half a GiB in a thousand steps is noise on an empty device. Where less than one GiB is left
it is the end of the run.

How it decides: the highest value is `share` of the device or more. It rose at least twice and by `gib` or more, in the
second half of the steps as much as in the first or more, and what is left is at most `halves` times the rise of the
second half. The size of the device is what the run says, else the least of a device that holds so much. A rise of 2 %
and more that has the shape of a leak is told by the rules of those shapes.

What else looks like this: the longest batches of a data set that come late.

What to do next: a snapshot of two steps; a smaller micro-batch gives room at once.

References: the memory staircase of KempnerForge's guide, 78.4, 78.6 and 79.1 GB of 80 after 500, 1000 and 2000 steps.

Example:
    ```metrics
    step: 200..2000/200
    mem_peak_gib: 78.4 78.4 78.4 78.4 78.6 78.6 78.6 78.6 78.6 79.1
    ```
    => OOM028 warning confidence=low step=1000 step_lo=800 cause=creep_near_capacity rise_gib=0.7000
Not this: a rise that came to an end
    ```metrics
    step: 200..2000/200
    mem_peak_gib: 78.4 78.6 79.1 79.1 79.1 79.1 79.1 79.1 79.1 79.1
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.memory.series import Series, series_of
from forensics.knowledge.sizes import least_size
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.oom._memory import amount, fatal, ranks, series_evidence
from forensics.stats.spread import Floats

_OF_SHAPES = 0.02


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM028: records, share of the device, GiB, and halves of a run that the room would last."""

    samples: int = 5
    share: float = 0.95
    gib: float = 0.2
    halves: float = 2.0


@dataclass(frozen=True, slots=True)
class _Creep:
    one: Series
    rise: float
    left: float
    at: int


@rule("oom", needs=("metrics", "events", "facts"), config=Config, severity="warning", cause="creep_near_capacity")
def creeps_near_capacity(run: Run, cfg: Config) -> Findings:
    """Find the device series that leaves least room and uses it up."""
    if fatal(run):
        return
    own = [s for s in series_of(run) if s.meaning.unit == "GiB" and not s.meaning.is_host and not s.meaning.falls]
    found = [creep for one in own if (creep := _creep(one, cfg)) is not None]
    creep = min(found, key=lambda c: c.left, default=None)
    if creep is None:
        return
    one = creep.one
    words = one.meaning.quantity.replace("_", " ")
    told = "the device" if one.capacity else f"a device of {least_size(one.peak):.0f} GiB"
    yield creeps_near_capacity.finding(
        f"{words} memory creeps up from {amount(one, one.peak - creep.rise)} to {amount(one, one.peak)}, and "
        f"{amount(one, creep.left)} of {told} is left",
        "it rose again in the second half of the steps, by as much as in the first or more",
        proof(*series_evidence(one, creep.at, 0, -1)),
        Onset(step=one.step(creep.at), rank=one.rank, step_lo=one.step(creep.at - 1)),
        confidence="medium" if one.capacity else "low",
        culprits=ranks(one),
        numbers={"rise_gib": creep.rise, "left_gib": creep.left},
    )


def _creep(one: Series, cfg: Config) -> _Creep | None:
    size = one.capacity or least_size(one.peak)
    if len(one.y) < cfg.samples or size is None or one.peak < cfg.share * size:
        return None
    highest: Floats = np.maximum.accumulate(one.y)
    rises = np.flatnonzero(np.diff(highest) > 0) + 1
    half = int(np.count_nonzero(one.x <= (float(one.x[0]) + float(one.x[-1])) / 2)) - 1
    first, second = float(highest[half] - highest[0]), float(highest[-1] - highest[half])
    rise, left = first + second, max(0.0, float(size) - one.peak)
    if len(rises) < 2 or rise < cfg.gib or second < first or left > cfg.halves * second:
        return None
    shaped = one.form.grows and one.form.rise >= _OF_SHAPES * abs(one.form.level)
    return None if shaped else _Creep(one, rise, left, int(rises[0]))
