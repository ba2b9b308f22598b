"""LRN010 lr-not-as-configured: the learning rate as logged is not the one that was meant.

What it detects: a warm-up that is longer than the run; a configured warm-up that did not happen, a configured decay
that did not happen, and a peak that differs from the configured one.

Why it matters: the run that was meant is not the run that was made. What was logged counts.

How it decides: a rate that rises along a line from the first record to the last of a run that reached its end was
still warming up: a warning where the loss fell by less than `fell`. All files that give a configured value must agree
on it. Warm-up: the first logged record lies in the first fifth of the configured warm-up and already has `at_peak` of
the highest rate. Decay: the scheduler decays (cosine, linear, polynomial, exponential), the record reaches `finished`
of the planned steps, and the last rate is still `at_peak` of the highest; one that ends at zero (cosine, linear) was
made for more steps where `left` of the highest is left. Peak: the highest rate, after a fall or a
constant stretch, is off the configured one by more than `off`: a note, as trainers scale the rate by batch or by
group.

What else looks like this: a rate scaled by the number of devices; the rate of one parameter group among several; a
resumed run whose warm-up is behind it.

What to do next: print the scheduler's class and its number of steps; check that warm-up is counted in optimizer steps.

References: Goyal et al. 2017, on warm-up and linear scaling; Loshchilov and Hutter 2017, on cosine decay.

Example:
    ```metrics
    step: 1..111/10
    lr: 0.0002
    ```
    ```facts key,value,family
    learning_rate,0.0002,config
    warmup_steps,50,config
    ```
    => LRN010 warning confidence=medium step=1 cause=warmup_missing logged=0.0002000 configured=50.00
Example: no decay
    ```metrics
    step: 10..120/10
    lr: 0.0002
    ```
    ```facts key,value,family
    lr_scheduler_type,cosine,config
    max_steps,120,config
    ```
    => LRN010 warning confidence=medium step=120 cause=decay_missing logged=0.0002000 configured=cosine
Not this:
    ```metrics
    step: 10..130/10
    lr: 4e-05 8e-05 0.00012 0.00016 0.0002 0.0002..0.0001/-0.000025 7.5e-05 5e-05 2.5e-05
    ```
    ```facts
    key: learning_rate warmup_steps lr_scheduler_type max_steps
    value: 0.0002 50 linear 130
    family: config
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.learning.losses import fell_by, losses
from forensics.analyses.learning.lr_config import Said, configured, number_of
from forensics.analyses.learning.lr_schedule import Schedule, schedule_of
from forensics.analyses.learning.objective import reinforced
from forensics.analyses.learning.rate import Warming, reached_its_end, rose_to_the_end
from forensics.case.curves.loss import curves
from forensics.case.endings import ending
from forensics.case.progress import ledger
from forensics.rules.kit import (
    Evidence,
    Finding,
    Findings,
    Run,
    Severity,
    at_step,
    fact_evidence,
    metric_evidence,
    number,
    onset_at,
    proof,
    rule,
)

#: Schedules that end at zero, where no lowest rate is configured.
_TO_ZERO = ("cosine", "linear")
_DECAYS = ("cosine", "linear", "polynomial", "exponential", "inverse_sqrt")


@dataclass(frozen=True, slots=True)
class AsConfigured:
    """Thresholds of LRN010: shares of the peak, of the steps, of the warm-up; a warm-up has `warmup` steps or more."""

    records: int = 10
    at_peak: float = 0.95
    early: float = 0.2
    warmup: int = 10
    finished: float = 0.9
    off: float = 0.05
    left: float = 0.3


@rule("learning", needs=("metrics", "facts", "events", "progress"), config=AsConfigured)
def lr_not_as_configured(run: Run, cfg: AsConfigured) -> Findings:
    """Compare the longest logged learning rate with the configuration."""
    logged = [c for c in curves(run, "lr") if len(c) >= cfg.records and c.attempt == 0]
    if not logged:
        return
    yield from _never_warm(run, schedule_of(max(logged, key=len)), Warming())
    schedule = schedule_of(max(logged, key=len))
    if schedule.peak <= 0:
        return
    yield from _warmup(run, schedule, cfg)
    yield from _decay(run, schedule, cfg)
    yield from _peak(run, schedule, cfg)


def _never_warm(run: Run, schedule: Schedule, cfg: Warming) -> Findings:
    if reinforced(run) or not rose_to_the_end(schedule, cfg) or not reached_its_end(run, schedule, cfg):
        return
    fall = max((fell_by(one) for one in losses(run)), default=1.0)
    if fall > cfg.fell:
        return
    last = schedule.curve.row(-1)
    yield lr_not_as_configured.finding(
        f"the warm-up is longer than the run: the learning rate still rises at the end, {at_step(last['at'])}",
        f"the rate rose along a line from {number(float(schedule.curve.values[0]))} to {number(schedule.peak)},"
        f" and the loss fell by {fall:.0%} only",
        proof(last, schedule.curve.row(0)),
        onset_at(schedule.curve.row(0)),
        severity="warning",
        confidence="medium",
        cause="lr_not_as_configured",
        numbers={"logged": schedule.peak, "fall": fall},
    )


def _warmup(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    steps, share = number_of(run, "warmup_steps"), number_of(run, "warmup_ratio")
    said = configured(run, "warmup_steps" if steps else "warmup_ratio")
    length = steps or (share or 0) * (ledger(run).planned("step") or 0)
    first = schedule.curve.step(0)
    if said is None or length < cfg.warmup or first is None or first > cfg.early * length:
        return
    if float(schedule.curve.values[0]) >= cfg.at_peak * schedule.peak:
        title = f"no warm-up was made: the learning rate is {number(schedule.curve.values[0])} at {at_step(first)}"
        because = f"the configuration asks for {length:.0f} steps of warm-up"
        yield _finding(schedule, 0, (title, because, "warmup_missing"), said)


def _decay(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    said, bars = configured(run, "scheduler"), (one.plan for one in ledger(run).of("train", "step"))
    last, v = schedule.curve.step(-1), schedule.curve.values
    ended = last if ending(run).success is not None else None
    total = ledger(run).planned("step") or max(bars, default=ended)
    if said is None or total is None or last is None or not cfg.finished * total <= last <= total / cfg.finished:
        return
    lowest = number_of(run, "min_lr")
    if not said.text.lower().startswith(_DECAYS) or (lowest is not None and lowest >= cfg.at_peak * schedule.peak):
        return
    left = float(v[-max(1, len(v) // 50) :].min()) / schedule.peak
    if said.text.lower() in _TO_ZERO and lowest is None and cfg.left <= left < cfg.at_peak:
        title = f"the schedule is longer than the run: at its end, {at_step(last)}, the rate is {left:.0%} of its peak"
        because = f"{said.text} ends near zero, and the run has {total:.0f} steps"
        yield _finding(schedule, len(v) - 1, (title, because, "schedule_longer"), said)
    if left >= cfg.at_peak:
        title = f"no decay was made: the learning rate is still {number(v[-1])} at {at_step(last)}"
        because = f"the configuration asks for {said.text} over {total:.0f} steps"
        yield _finding(schedule, len(v) - 1, (title, because, "decay_missing"), said)


def _peak(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    said, v = configured(run, "lr"), schedule.curve.values
    if said is None or said.number is None or said.number <= 0 or not _is_past(v, schedule):
        return
    ratio = schedule.peak / said.number
    if not 1 - cfg.off <= ratio <= 1 + cfg.off:
        title = f"the highest learning rate is {number(schedule.peak)}, {ratio:.3g} times the configured {said.text}"
        because = "the logged rate had passed its peak"
        yield _finding(schedule, schedule.top, (title, because, "peak_differs"), said, Severity.INFO)


def _is_past(values: np.ndarray, schedule: Schedule) -> bool:
    """Whether the peak is behind: three records at it, or a lower value after it."""
    at_peak = values >= 0.999 * schedule.peak
    return int(at_peak.sum()) >= 3 or bool((values[schedule.top :] < 0.99 * schedule.peak).any())


def _finding(
    schedule: Schedule, at: int, words: tuple[str, str, str], said: Said, severity: Severity = Severity.WARNING
) -> Finding:
    row = schedule.curve.row(at)
    evidence: tuple[Evidence, ...] = (metric_evidence(row), fact_evidence(said.row))
    return lr_not_as_configured.finding(
        words[0],
        words[1],
        evidence,
        onset_at(row),
        severity=severity,
        confidence="medium" if severity is Severity.WARNING else "low",
        cause=words[2],
        causal="root" if severity is Severity.WARNING else "context",
        numbers={"logged": float(schedule.curve.values[at]), "configured": said.number or said.text},
    )
