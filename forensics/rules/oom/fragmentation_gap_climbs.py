"""OOM004 fragmentation-gap-climbs: reserved memory pulls away from what is allocated, more and more.

What it detects: a lasting rise of the difference between what the allocator holds and what tensors use.

Why it matters: the free memory is in pieces that no request fits. The run ends in an out-of-memory error although
gigabytes are free, and a snapshot of live tensors shows nothing.

How it decides: reserved less allocated memory is taken record by record. It grows by a slope or in stairs, ends at
`ratio` times where it began or more, by `gib` or more, and carries at least `carried` of the growth of what is
reserved. Its level alone proves nothing: at the end of a step most of it is free cache. An allocator takes memory in
whole pieces, so fragmentation may climb in stairs; a steady slope of reserved memory over level allocations is the
same thing seen from further away.
It is an error when the run ended in an out-of-memory error with the device nearly full, else a warning.

What else looks like this: batches of very different lengths, whose largest come late; a cache that was never emptied
after an evaluation.

What to do next: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` where it is off; fewer different shapes (pad to
multiples, bucket by length); a snapshot shows which segments are held by what.

References: PyTorch, CUDA semantics, "Optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF"; Guo et al. 2024, "GMLake".

Example:
    ```metrics
    step: 10..120/10
    mem_allocated_gib: 20.01 20.02 20.01 20.03 20.01 20.02 20.01 20.02 20.01 20.03 20.01 20.02
    mem_reserved_gib: 21.02 21.51..23.04/0.51 23.52 24.03 24.51 25.02 25.53 26.01 26.52
    ```
    => OOM004 warning confidence=medium step=20 step_lo=10 cause=fragmentation gap_first_gib=1.010 gap_last_gib=6.500
Not this: a wide gap that stays as it is
    ```metrics
    step: 10..120/10
    mem_allocated_gib: 20.01 20.02 20.01 20.03 20.01 20.02 20.01 20.02 20.01 20.03 20.01 20.02
    mem_reserved_gib: 29.02
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.memory.series import Series, series_of
from forensics.rules.kit import Findings, Run, proof, rule
from forensics.rules.oom._memory import (
    GIB,
    message_evidence,
    onset_of,
    ranks,
    reach_numbers,
    series_evidence,
    severity_of,
    size,
    until,
)


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM004: records, the gap's growth as a ratio and in GiB, and its share of the reserved growth."""

    samples: int = 12
    ratio: float = 1.5
    gib: float = 0.5
    carried: float = 0.5


@rule("oom", needs=("metrics", "events", "facts"), config=Config, confidence="medium", cause="fragmentation")
def fragmentation_gap_climbs(run: Run, cfg: Config) -> Findings:
    """Find the reserved series whose difference to the allocated one grows most."""
    found = [
        one for one in series_of(run) if one.meaning.quantity in {"reserved", "peak_reserved"} and _grows(one, cfg)
    ]
    if not found:
        return
    one = max(found, key=lambda s: s.gap.rise if s.gap else 0.0)
    gap, first, last = one.gap, one.gap_first or 0.0, one.gap_last or 0.0
    severity, died = severity_of(run, one)
    yield fragmentation_gap_climbs.finding(
        f"reserved memory pulls away from allocated memory: {size(first * GIB)} → {size(last * GIB)}"
        f" unused{until(one)}",
        "the difference rises by more than its noise and carries most of the growth of what is reserved:"
        " free memory is in pieces that no request fits",
        proof(*series_evidence(one, one.form.onset or 0, -1), *(message_evidence(m) for m in died)),
        onset_of(one),
        severity=severity,
        culprits=ranks(one),
        numbers={"gap_first_gib": first, "gap_last_gib": last, "gap_rise_gib": gap.rise if gap else 0.0}
        | reach_numbers(one),
    )


def _grows(one: Series, cfg: Config) -> bool:
    gap, first, last = one.gap, one.gap_first, one.gap_last
    if gap is None or first is None or last is None or gap.samples - gap.warmup < cfg.samples or not gap.grows:
        return False
    grown = last - first
    reserved = max(one.form.rise, float(one.y[-1] - one.y[one.form.warmup]))
    return grown >= cfg.gib and last >= cfg.ratio * first and grown >= cfg.carried * reserved
