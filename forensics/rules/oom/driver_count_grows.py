"""OOM026 driver-count-grows: the driver counts more and more memory as used, and the framework does not.

What it detects: used memory of a device (nvidia-smi, DCGM, system metrics) that climbs to the end, while what the
framework reserves stays, or where nothing of the framework's is logged.

Why it matters: the framework's own numbers look healthy until the device is full.

How it decides: a slope or a staircase of at least `gib` and 2 % of the level, over `samples` records; of at least
`alone_gib` where nothing of the framework's is logged. Where allocated or reserved memory of the run rises by half of
that or more, the rules of those series say it.

What else looks like this: an allocator that takes more memory for longer sequences; a second job on the device.

What to do next: log allocated and reserved memory beside it; list the processes on the device.

References: PyTorch, CUDA semantics, "Memory management".

Example:
    ```metrics
    seq: 1..20
    gpu_mem_used_gib: 60 60.5 61 61.5 62 62.5 63 63.5 64 64.5 65 65.5 66 66.5 67 67.5 68 68.5 69 69.5
    ```
    => OOM026 warning confidence=medium cause=device_memory_grows rise_gib=9.500
Not this: a level
    ```metrics
    seq: 1..20
    gpu_mem_used_gib: 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1 60 60.1
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.series import Series, series_of
from forensics.rules.kit import Findings, Run, proof, rule
from forensics.rules.oom._memory import amount, grew, onset_of, reach_numbers, series_evidence, until, worst

_OF_FRAMEWORK = ("allocated", "active", "reserved", "peak_allocated", "peak_active", "peak_reserved")
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM026: records, and the least rise in GiB, above what contexts and communicators add late.

    Where nothing of the framework's is logged the rise may be its own: a job that grows into its longest sequences
    took 0.6 GiB in a golden run that is well.
    """

    samples: int = 12
    gib: float = 0.5
    alone_gib: float = 2.0


@rule("oom", needs=("metrics", "events", "facts"), config=Config, severity="warning", confidence="medium")
def driver_count_grows(run: Run, cfg: Config) -> Findings:
    """Find the device whose used memory grows most."""
    one = worst(grew(run, ("used",), ("slope", "staircase"), cfg.samples, cfg.gib))
    if one is None:
        return
    held = [s for s in series_of(run) if s.meaning.quantity in _OF_FRAMEWORK and s.meaning.unit == "GiB"]
    if any(s.form.rise >= _HALF * one.form.rise for s in held) or (not held and one.form.rise < cfg.alone_gib):
        return
    device = "the device" if one.device is None else f"GPU {one.device}"
    level = max(held, key=lambda s: s.peak, default=None)
    yield driver_count_grows.finding(
        f"used memory of {device} climbs from {amount(one, float(one.y[one.form.onset or 0]))} to "
        f"{amount(one, float(one.y[-1]))}{_beside(level)}{until(one)}",
        "the driver's count rises to the end, by more than its noise",
        proof(*series_evidence(one, one.form.onset or 0, -1), *(() if level is None else series_evidence(level, -1))),
        onset_of(one),
        cause="device_memory_grows" if level is None else "outside_allocator",
        numbers={"rise_gib": one.form.rise, **reach_numbers(one)},
    )


def _beside(level: Series | None) -> str:
    if level is None:
        return ""
    words = level.meaning.quantity.replace("_", " ")
    return f", while the framework's {words} memory stays at {amount(level, level.peak)}"
