"""OOM002 memory-creeps: allocated memory rises steadily, step after step.

What it detects: a steady rise of the memory that tensors hold (allocated, active, or the peak of either).

Why it matters: a run that fits at its first step and holds on to a little more with every step dies late, when most of
the work is done. The slope says when.

How it decides: the shape of the series over steps is a slope, not stairs, teeth or one shift, over at least `samples`
records, by `gib` and two per cent of the level or more. A peak that never comes down is a running maximum, and counts
only while it sets new records. What rises is allocated memory, so this is retention; when only the reserved memory
rises, see OOM004. With few printed digits the growth is told and its shape is not.
It is an error when the run ended in an out-of-memory error with the device nearly full, else a warning.

What else looks like this: sequences or images that grow by a schedule; a replay buffer or a cache that is meant to
fill; the first hundred steps of an allocator with very uneven batches.

What to do next: take a memory snapshot some steps apart and compare what is alive; look for losses and outputs that are
kept with their graph (`loss` instead of `loss.item()`), and for metrics that are never reset.

References: PyTorch, "Understanding CUDA Memory Usage"; PyTorch FAQ, "My model reports out of memory"; Theil 1950 and
Sen 1968 on the robust slope.

Example:
    ```metrics
    step: 10..120/10
    mem_allocated_gib: 20.01 20.26 20.49 20.76 21.02 21.24 21.51 21.74 22.01 22.26 22.49 22.77
    ```
    => OOM002 warning confidence=medium step=10 cause=leak_per_step rise_gib=2.750 gib_per_step=0.02500
Not this: memory that rises while the first steps run, and then stays
    ```metrics
    step: 10..120/10
    mem_allocated_gib: 12.01 20.26 20.29 20.26 20.22 20.24 20.31 20.24 20.21 20.26 20.29 20.27
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.rules.kit import Findings, Run, proof, rule
from forensics.rules.oom._memory import (
    HELD,
    amount,
    grew,
    message_evidence,
    onset_of,
    ranks,
    reach_numbers,
    series_evidence,
    severity_of,
    until,
    worst,
)


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM002: records after warm-up, and the least rise in GiB (below it nobody runs out for it)."""

    samples: int = 12
    sure_samples: int = 20
    gib: float = 0.2


@rule("oom", needs=("metrics", "events", "facts"), config=Config, cause="leak_per_step")
def memory_creeps(run: Run, cfg: Config) -> Findings:
    """Find the series of allocated memory that rises most."""
    found = grew(run, HELD, ("slope", "unresolved"), cfg.samples, cfg.gib)
    one = worst(found)
    if one is None:
        return
    severity, died = severity_of(run, one)
    form = one.form
    per = f" by {amount(one, form.per_step)} per {'step' if one.by_step else 'record'}" if form.per_step > 0 else ""
    onset = onset_of(one)
    sure = form.kind == "slope" and form.samples - form.warmup >= cfg.sure_samples and one.kind != "cumulative peak"
    yield memory_creeps.finding(
        f"{one.meaning.quantity.replace('_', ' ')} memory rises steadily{per}"
        f" ({amount(one, float(one.y[form.onset or 0]))} → {amount(one, float(one.y[-1]))}){until(one)}",
        "it rises all the way, by more than its noise and without treads: something is kept at every step"
        + (f" ({form.note})" if form.note else ""),
        proof(*series_evidence(one, form.onset or 0, -1), *(message_evidence(m) for m in died)),
        onset,
        severity=severity,
        confidence="high" if sure else "medium" if form.kind == "slope" else "low",
        culprits=ranks(one),
        numbers={"rise_gib": form.rise, "gib_per_step": form.per_step, "series": len(found), **reach_numbers(one)},
    )
