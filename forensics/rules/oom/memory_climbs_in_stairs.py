"""OOM003 memory-climbs-in-stairs: memory rises in steps of like height, and never comes down.

What it detects: a staircase in the memory that tensors hold: flat treads, with lasting rises between them.

Why it matters: something is kept once per period, as a rule by what runs then: an evaluation, a checkpoint, a logging
call. The period names it.

How it decides: at least two lasting rises carry seven tenths of the growth, the treads between them are flat and four
records or longer, and no tread is lower than the one before it; `samples` records or more, and a rise of at least
`gib` and two per cent. Where rises stand at the steps of evaluations or checkpoints that is said. A per-step leak is a
slope and not this (OOM002); an allocator that fragments also climbs in stairs, but in reserved memory alone (OOM004).
It is an error when the run ended in an out-of-memory error with the device nearly full, else a warning.

What else looks like this: a schedule of growing sequence lengths; models that are loaded one after the other; a cache
of compiled shapes.

What to do next: look at what runs at the steps of the rises; wrap evaluations in `torch.no_grad()` and delete their
outputs; take a snapshot after two of the rises.

References: PyTorch, "Understanding CUDA Memory Usage"; Scott and Knott 1974 on splitting a series into level parts.

Example:
    ```metrics
    step: 10..160/10
    mem_allocated_gib: 20*4 20.5*4 21*4 21.5*4
    ```
    => OOM003 warning confidence=high step=50 step_lo=40 cause=leak_periodic rise_gib=1.500 height_gib=0.5000
Not this: one rise, when a second phase began
    ```metrics
    step: 10..140/10
    mem_allocated_gib: 20*8 21.5*6
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.memory.series import Series
from forensics.case.series import metric_rows
from forensics.case.steps import at
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
    """Thresholds of OOM003: records after warm-up, least rise in GiB, and the share of rises that an event explains."""

    samples: int = 12
    gib: float = 0.2
    together: float = 0.7


@rule("oom", needs=("metrics", "events", "facts", "checkpoints"), config=Config, cause="leak_periodic")
def memory_climbs_in_stairs(run: Run, cfg: Config) -> Findings:
    """Find the series of allocated memory whose stairs climb most."""
    found = grew(run, HELD, ("staircase",), cfg.samples, cfg.gib)
    one = worst(found)
    if one is None:
        return
    severity, died = severity_of(run, one)
    form, beside = one.form, _beside(run, one, cfg)
    every = f", every {form.period:.0f} {'steps' if one.by_step else 'records'}" if form.period else ""
    yield memory_climbs_in_stairs.finding(
        f"{one.meaning.quantity.replace('_', ' ')} memory climbs in {len(form.steps)} stairs of about"
        f" {amount(one, form.height or 0.0)}{every}{beside}{until(one)}",
        "the rises last, the treads between them are flat, and none comes down again: something is kept at each"
        + (f" ({form.note})" if form.note else ""),
        proof(*series_evidence(one, *[s.index for s in form.steps[:3]], -1), *(message_evidence(m) for m in died)),
        onset_of(one),
        severity=severity,
        confidence="high" if form.period and one.kind != "cumulative peak" else "medium",
        culprits=ranks(one),
        numbers={"rise_gib": form.rise, "stairs": len(form.steps), "height_gib": form.height or 0.0}
        | ({"period": form.period} if form.period else {})
        | reach_numbers(one),
    )


def _beside(run: Run, one: Series, cfg: Config) -> str:
    """Say which periodic event stands at most of the rises, or nothing."""
    if not one.by_step or len(one.x) < 2:
        return ""
    rises = [s.x for s in one.form.steps]
    reach = float(one.x[1] - one.x[0])
    evals = metric_rows(run, pl.col("name").str.starts_with("eval")).select(at()).unique().collect()["at"]
    saves = run.scan("checkpoints").filter(pl.col("kind") == "saved").select("step").unique().collect()["step"]
    for what, steps in (("evaluations", evals.drop_nulls()), ("checkpoints", saves.drop_nulls())):
        near = sum(1 for x in rises if ((steps >= x - 2 * reach) & (steps <= x)).any())
        if steps.len() and near >= cfg.together * len(rises) and steps.len() <= 3 * len(rises):
            return f", beside {what}"
    return ""
