"""OOM007 near-capacity: memory is level, but leaves hardly any room.

What it detects: device memory that is steady (flat or a plateau) at a high share of the device.

Why it matters: nothing leaks. The next longer batch, or an evaluation, is all it takes; where the run died of memory,
the cause is the size of one request and not growth.

How it decides: the worst value is at least `share` of the device's size, and the shape over the steps is flat, a
plateau or isolated spikes. It is a warning where the run ended in an out-of-memory error, else a note: a well-packed
device is what many runs aim for.

What else looks like this: frameworks that take most of the device at start and manage it themselves (JAX, vLLM).

What to do next: a smaller micro-batch, activation checkpointing, or a limit on the longest sequence.

References: PyTorch, CUDA semantics, "Memory management".

Example:
    ```metrics
    step: 10..80/10
    gpu_mem_used_pct: 97.1 97.2 97.1 97.2 97.1 97.2 97.1 97.2
    ```
    => OOM007 info confidence=high step=20 cause=near_capacity causal=context share=0.9720
Not this: level, with room
    ```metrics
    step: 10..80/10
    gpu_mem_used_pct: 71.1 71.2 71.1 71.2 71.1 71.2 71.1 71.2
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.memory.series import series_of
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.oom._memory import amount, killer, message_evidence, ranks, series_evidence


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM007: the share of the device from which one longer batch no longer fits."""

    share: float = 0.95


@rule("oom", needs=("metrics", "events", "facts"), config=Config, cause="near_capacity", causal="context")
def near_capacity(run: Run, cfg: Config) -> Findings:
    """Find the level device series that leaves least room."""
    level = {"flat", "plateau", "spike"}
    every = [s for s in series_of(run) if not s.meaning.is_host and s.form.kind in level and s.share is not None]
    one = max(every, key=lambda s: s.share or 0.0, default=None)
    if one is None or (one.share or 0.0) < cfg.share:
        return
    died = killer(run, one)
    at = int(np.argmin(one.y) if one.meaning.falls else np.argmax(one.y))
    yield near_capacity.finding(
        f"device memory is level at {100 * (one.share or 0):.0f} % of the device ({amount(one, one.peak)})",
        "it does not grow, and the room that is left is less than one longer batch takes",
        proof(*series_evidence(one, at), message_evidence(died) if died else None),
        Onset(step=one.step(at), rank=one.rank),
        severity="warning" if died else "info",
        confidence="high" if one.capacity else "medium",
        culprits=ranks(one) if died else (),
        numbers={"share": one.share or 0.0},
    )
