"""SLO001 step-time-level-shift: steps became much slower at some point, and stayed slow to the end.

What it detects: a rise of the time per step to a new level that lasts to the end of the run, or a drift upwards
without any return.

Why it matters: no error is printed and the loss looks right; the run only costs twice the money. A running average
since the start, which many trainers print, shows a late change hours afterwards.

How it decides: the levels of the steady times of every clock (docs/explanation/slowdown.md): the last one lies above
the best level before it, and above the first. The slowdown begins at the first level that left that best one and did
not come back to it, so of two jumps the first is told. An error where a step takes `grave` times what it did, a warning
from `mild` on, both only where the change is confirmed against noise of long memory and the fastest tenth of the
records is slower by `mild`, too: the load of another job leaves the fastest as fast. Where a side has fewer than twenty
records, five at least, a rise to `short` times must be `far` times what stretches of such a length do on either side;
half of that suffices for a rise to `high` times over `few` records, `sure` deviations out.
Three and more even rises at even distances, or two by the same seconds, are a schedule, and a note. Steps that hold
more work are not slower: a throughput in tokens that did not fall contradicts.

What else looks like this: longer sequences or a deeper model from some step on, by design; a resumed run on other
machines; another job on the same device.

What to do next: look at what else ran on the hosts at the onset, at clocks and temperatures of the devices, and at
the data loader's waiting time.

References: Page, "Continuous Inspection Schemes" (1954), on cumulative sums; Wu et al., "FALCON: Pinpointing and
Mitigating Stragglers for Large-Scale Hybrid-Parallel Training" (2024), on checking the size of a change after its
time.

Example:
    ```metrics
    step: 10..220/10
    train_time_s: 3 6.1 9 12.05 15.05 18 21.1 24.1 27.2 30.1 40.15 50.15 60.1 70.2 80.2 90.3 100.2 110.25 120.25 130.2
        140.3 150.3
    ```
    => SLO001 error confidence=medium step=110 step_lo=100 cause=slow_steps before_s=0.3018 ratio=3.319
Not this: one slow interval, and pauses for an evaluation
    ```metrics
    step: 10..110/10
    train_time_s: 9 12 15 18.1 31 34 37.2 47 50.1 53 56.1
    eval_loss: -*3 3.5 -*7
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from forensics.analyses.pace.account import Gravity, Paced, gravest
from forensics.analyses.pace.change import Change
from forensics.rules.kit import EvidenceRole, Finding, Findings, Onset, Run, at_step, rule
from forensics.rules.slowdown._pace import confidence_of, evidence_of, measured, onset_of, severity_of, slower
from forensics.rules.slowdown.traces.communication_grew import trace_communication_grew
from forensics.rules.slowdown.traces.idle_grew import trace_idle_grew
from forensics.rules.slowdown.traces.memory_ops_grew import trace_memory_ops_grew
from forensics.rules.slowdown.traces.other_kernels_grew import trace_other_kernels_grew

#: What may explain a rise where a trace was taken before it and one after.
_GREW: tuple[Callable[[Run], Findings], ...] = (
    trace_communication_grew,
    trace_idle_grew,
    trace_memory_ops_grew,
    trace_other_kernels_grew,
)


@rule("slowdown", needs=("metrics", "checkpoints", "progress", "spans"), config=Gravity, cause="slow_steps")
def step_time_level_shift(run: Run, cfg: Gravity) -> Findings:
    """Find the clock that lost most by a lasting rise of its level."""
    found = gravest(run, cfg, "jump", "stairs")
    if found is not None:
        slower = _finding(*found, cfg)
        why = _grown(run, slower.onset)
        yield slower if why is None else _with(slower, why)


def _grown(run: Run, onset: Onset) -> Finding | None:
    """Give what grew most of the device's time between two traces of which one stands on each side of the onset."""
    told = (finding for grew in _GREW for finding in grew(run))
    around = [f for f in told if _is_around(f.onset, onset.step)]
    return max(around, key=lambda f: float(f.numbers["after_share"]) - float(f.numbers["before_share"]), default=None)


def _is_around(traces: Onset, step: int | None) -> bool:
    if step is None or traces.step is None or traces.step_lo is None:
        return False
    return traces.step_lo < step <= traces.step


def _with(slower: Finding, why: Finding) -> Finding:
    return replace(
        slower,
        title=f"{slower.title}; {why.title}",
        cause=why.cause,
        evidence=(*slower.evidence, *(replace(e, role=EvidenceRole.RELATED) for e in why.evidence)),
        numbers={**slower.numbers, **why.numbers},
    )


def _finding(one: Paced, change: Change, cfg: Gravity) -> Finding:
    by_plan = ", in even stairs, as a schedule makes them" if change.form == "stairs" else ""
    return step_time_level_shift.finding(
        f"{slower(one, change)} from {at_step(one.at(change.first))} on{by_plan}",
        measured(one, change),
        evidence_of(one, change),
        onset_of(one, change),
        severity=severity_of(one, change, cfg),
        confidence=confidence_of(one, change),
        numbers={
            "before_s": change.before,
            "after_s": change.before * change.ratio,
            "ratio": change.ratio,
            "z": change.z,
            "lost": one.lost(change),
            "tier": "confirmed" if change.confirmed else "possible",
        },
    )
