"""SLO001 steps-got-slower: the time per step rose several-fold and stayed there to the end.

What it detects: a step change or a drift of the printed step time, or of the differences of a running clock.

Why it matters: the run pays several times the price per step, and a running average hides it.

How it decides: the level at the end is at least three times the level before the onset; no record after the onset comes
back below the middle of the two; nine of ten records before the onset are faster than every one after it. Smaller
changes are left alone: schedules of batch size, sequence length or depth make them on purpose.

What else looks like this: evaluations and checkpoints (single slow records), compilation at the start, another stage of
the run with a larger model or longer sequences.

What to do next: compare a profiler trace from before and after the onset; look at the data loader and at who shares the
machine.

References: Jiang et al. 2024, MegaScale, section 5 (stragglers).

Example:
    ```metrics step,name,value
    1,step_time_s,0.5
    2,step_time_s,0.25
    3,step_time_s,0.25
    4,step_time_s,0.25
    5,step_time_s,0.25
    6,step_time_s,0.25
    7,step_time_s,1.25
    8,step_time_s,1.25
    9,step_time_s,1.25
    10,step_time_s,1.25
    ```
    => SLO001 error step=7
Not this:
    ```metrics step,name,value
    1,step_time_s,0.5
    2,step_time_s,0.25
    3,step_time_s,0.25
    4,step_time_s,2.5
    5,step_time_s,0.25
    6,step_time_s,0.25
    7,step_time_s,0.25
    8,step_time_s,2.5
    9,step_time_s,0.25
    10,step_time_s,0.25
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning._rise import Rise, rise_of
from forensics.signals.losses import Series
from forensics.signals.steptimes import steptimes
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of SLO001: `factor` between the levels, records before and after the onset, share of faster records."""

    factor: float = 3.0
    records_before: int = 5
    records_after: int = 3
    window: int = 3
    faster: float = 0.9


@rule("SLO001", shape=Shape.SLOWDOWN, needs=("metrics",), config=Config)
def steps_got_slower(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the first source whose steps became several times slower for good."""
    cfg = cfg or Config()
    for series in steptimes(run):
        rise = rise_of(series.values, window=cfg.window)
        if rise is not None and _slower(series.values, rise, cfg):
            yield _finding(series, rise)
            return


def _slower(values: tuple[float, ...], rise: Rise, cfg: Config) -> bool:
    before, after = values[: rise.onset], values[rise.onset :]
    if len(before) < cfg.records_before or len(after) < cfg.records_after:
        return False
    fastest = min(after)
    faster = sum(v < fastest for v in before) / len(before)
    return rise.final >= cfg.factor * median(before) > 0 and faster >= cfg.faster


def _finding(series: Series, rise: Rise) -> Finding:
    i, step = rise.onset, series.steps[rise.onset]
    base = median(series.values[:i])
    words = f" from step {step}" if step is not None else ""
    return Finding(
        rule="SLO001",
        shape=Shape.SLOWDOWN,
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=f"a step takes {rise.final / base:.1f} times as long{words}: {base:.3g} s → {rise.final:.3g} s",
        because="no later record comes back to the lower half of that rise",
        evidence=(_evidence(series, i, EvidenceRole.PRIMARY), _evidence(series, i - 1, EvidenceRole.RELATED)),
        onset=Onset(step=step, t_ns=series.times[i], rank=series.rank, step_lo=series.steps[i - 1]),
        cause="steps_got_slower",
        causal=Causal.ROOT,
        numbers={"before_s": base, "after_s": rise.final, "factor": rise.final / base},
        likely=("another process on the machine", "a data loader that cannot keep up", "throttling of the device"),
        next=("compare a profiler trace from before the onset with one from after it",),
    )


def _evidence(series: Series, i: int, role: EvidenceRole) -> Evidence:
    return Evidence(
        source=series.source,
        locator=Locator(line=series.lines[i], byte=series.bytes[i]),
        quote=f"{series.raw_name}: {series.values[i]:.4g} s per step at step {series.steps[i]}",
        step=series.steps[i],
        rank=series.rank,
        t_ns=series.times[i],
        name=series.name,
        value=series.values[i],
        role=role,
    )
