"""SLO001 step-time-level-shift: steps became much slower at some point, and stayed slow to the end.

What it detects: a rise of the time per step to a new level that lasts to the end of the run, or a drift upwards
without any return.

Why it matters: no error is printed and the loss looks right; the run only costs twice the money. A running average
since the start, which many trainers print, shows a late change hours afterwards.

How it decides: seconds per step come from differences of the trainer's running clock, else from its step times, else
from its throughput. Warm-up records and intervals with an evaluation or a checkpoint are left out. Then: the best
split has medians `ratio` apart, in all and among the `near` records on either side, `kept` of the values on either
side stay on theirs, and the records at the end do so too; a part of fewer than `records` needs `short_ratio`. Less
than `jump` counts only when no second step of `stair` follows: stairs are what a schedule of sequence lengths or
depths looks like. Or the medians of eight equal parts never fall and reach `drift`, without a staircase. A throughput
in tokens that did not fall contradicts, and silences the rule.

Where that finds nothing, smaller rises are looked for in every clock, rates and timestamps too, by the levels of its
steady times (docs/explanation/slowdown.md): an error from `sure` on, a warning from `mild` on, both only for a single
jump that is confirmed and has twenty records on either side; what is merely possible is a note.

What else looks like this: longer sequences or a deeper model from some step on, by design; a resumed run on other
machines; another job on the same device.

What to do next: look at what else ran on the hosts at the onset, at clocks and temperatures of the devices, and at
the data loader's waiting time.

References: Page, "Continuous Inspection Schemes" (1954), on cumulative sums; Wu et al., "FALCON: Pinpointing and
Mitigating Stragglers for Large-Scale Hybrid-Parallel Training" (2024), on checking the size of a change after its
time.

Example:
    ```metrics step,name,value
    10,train_time_s,9
    20,train_time_s,12
    30,train_time_s,15
    40,train_time_s,18.1
    50,train_time_s,21
    60,train_time_s,24
    70,train_time_s,27.2
    80,train_time_s,37
    90,train_time_s,47.1
    100,train_time_s,57
    110,train_time_s,66.9
    ```
    => SLO001 error confidence=medium step=80 step_lo=70 cause=slow_steps before_s=0.3000 ratio=3.300
Not this: one slow interval, and pauses for an evaluation
    ```metrics step,name,value
    10,train_time_s,9
    20,train_time_s,12
    30,train_time_s,15
    40,train_time_s,18.1
    40,eval_loss,3.5
    50,train_time_s,31
    60,train_time_s,34
    70,train_time_s,37.2
    80,train_time_s,47
    90,train_time_s,50.1
    100,train_time_s,53
    110,train_time_s,56.1
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forensics.case.evidence import at_step, metric_evidence, number
from forensics.model import Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.slowdown._pace import (
    Paced,
    confidence_of,
    evidence_of,
    measured,
    more_work,
    onset_of,
    paced,
    settled,
)
from forensics.signals.level import Shift, climb_of, shift_of
from forensics.signals.pace_change import Change
from forensics.signals.throughput import paces, rates
from forensics.store.run import Run

_PARTS = 8
_LIKELY = (
    "another job on the same device or host",
    "a device that runs hot or has lost its clocks",
    "a data loader or storage that cannot keep up",
    "a schedule that makes steps heavier, such as longer sequences",
)


@dataclass(frozen=True, slots=True)
class Slower:
    """Thresholds of SLO001: ratios of times per step, numbers of records, and shares of them.

    `quanta` is how many printing units a rise must have; `staircase` is the share of a drift's rise in its two
    largest increments above which it is taken for a schedule. `sure` and `mild` are ratios for jumps found by levels;
    below `mild` a shared host, a warmer device or an evaluation beside the training explains it, and it is a note.
    """

    ratio: float = 1.5
    short_ratio: float = 2.0
    jump: float = 2.5
    stair: float = 1.2
    drift: float = 2.0
    records: int = 8
    near: int = 5
    fewest: int = 3
    kept: float = 0.9
    quanta: float = 3.0
    staircase: float = 0.6
    sure: float = 1.3
    mild: float = 1.1


@rule("SLO001", shape=Shape.SLOWDOWN, needs=("metrics", "checkpoints"), config=Slower)
def step_time_level_shift(run: Run, cfg: Slower | None = None) -> Iterator[Finding]:
    """Find the source whose steps became slower for good, the earliest onset first."""
    cfg = cfg or Slower()
    found = [hit for rows in paces(run) if (hit := _judge(run, _steady(rows), cfg)) is not None]
    if found:
        yield min(found, key=lambda f: f.onset.step or 0)
    else:
        yield from _smaller(run, cfg)


def _smaller(run: Run, cfg: Slower) -> Iterator[Finding]:
    """Find the clock with the clearest lasting jump of its level."""
    found = [
        (p, p.change)
        for p in paced(run)
        if p.change is not None and p.change.kind == "lasting" and p.change.form == "jump"
    ]
    kept = [(p, change) for p, change in found if _tellable(p, change, cfg) and not more_work(run, p, change)]
    if kept:
        yield _jump(*max(kept, key=lambda pair: pair[1].z), cfg)


def _tellable(one: Paced, change: Change, cfg: Slower) -> bool:
    """Whether a jump is no staircase, as a schedule makes it, and more than the printing unit."""
    return len(change.cuts) == 1 and change.ratio - 1 >= cfg.quanta * one.steady.resolution


def _jump(one: Paced, change: Change, cfg: Slower) -> Finding:
    grave = change.confirmed and settled(one, change) and not one.steady.multimodal
    severity = Severity.ERROR if change.ratio >= cfg.sure else Severity.WARNING
    return Finding(
        rule="SLO001",
        shape=Shape.SLOWDOWN,
        severity=severity if grave and change.ratio >= cfg.mild else Severity.INFO,
        confidence=confidence_of(one, change),
        title=f"seconds per {one.clock.unit} rose to {change.ratio:.2f} times and stayed, "
        f"from {at_step(one.at(change.first))}",
        because=measured(one, change),
        evidence=evidence_of(one, change),
        onset=onset_of(one, change),
        cause="slow_steps",
        numbers={
            "before_s": change.before,
            "after_s": change.before * change.ratio,
            "ratio": change.ratio,
            "z": change.z,
            "tier": "confirmed" if change.confirmed else "possible",
        },
        likely=_LIKELY,
        next=("look at what else ran on the hosts at the onset, and at the devices' clocks",),
    )


def _steady(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out warm-up, and intervals with a pause unless almost every interval has one."""
    late = rows.slice(max(1, rows.height // 20))
    calm = late.filter(~pl.col("busy"))
    return calm if 2 * calm.height >= late.height else late


def _judge(run: Run, rows: pl.DataFrame, cfg: Slower) -> Finding | None:
    shift = shift_of(rows["pace"], edge=cfg.fewest, near=cfg.near)
    if shift is not None and _is_shift(shift, rows, cfg):
        where, before, after, words = shift.index, shift.before, shift.after, "rose and stayed"
    else:
        climb = climb_of(rows["pace"], parts=_PARTS) if rows.height >= _PARTS * cfg.records else None
        if climb is None or climb.last < cfg.drift * climb.first:
            return None
        if climb.falls > 1 - cfg.kept or climb.steepest > cfg.staircase:
            return None
        low = (rows["pace"] < climb.first * cfg.ratio).arg_true()
        where, before, after, words = int(low[-1]) + 1, climb.first, climb.last, "drifted upwards"
    if where >= rows.height or _same_throughput(run, rows, where, cfg):
        return None
    return _finding(rows, where, (before, after), words)


def _is_shift(shift: Shift, rows: pl.DataFrame, cfg: Slower) -> bool:
    short = min(shift.index, rows.height - shift.index) < cfg.records
    ratio = cfg.short_ratio if short else cfg.ratio
    middle = (shift.before * shift.after) ** 0.5
    jump = min(shift.after / shift.before, shift.near_after / shift.near_before)
    if jump < cfg.jump and _climbs_on(rows.slice(shift.index), cfg):
        return False
    return (
        jump >= ratio
        and shift.after - shift.before >= cfg.quanta * shift.quantum
        and min(shift.kept_before, shift.kept_after) >= cfg.kept
        and bool((rows["pace"].tail(cfg.fewest) > middle).all())
    )


def _climbs_on(rows: pl.DataFrame, cfg: Slower) -> bool:
    """Whether the slow part holds a second lasting step upwards."""
    second = shift_of(rows["pace"], edge=cfg.fewest, near=cfg.near)
    return second is not None and second.after >= cfg.stair * second.before and second.kept_after >= cfg.kept


def _same_throughput(run: Run, rows: pl.DataFrame, where: int, cfg: Slower) -> bool:
    """Whether the tokens per second did not fall with the steps: then the steps only hold more tokens."""
    rate = rates(run, rows["source"][0], rows["rank"][0])
    onset = rows["at"][where]
    before = rate.filter((pl.col("at") < onset) & (pl.col("at") >= rows["at"][0]))["value"].median()
    after = rate.filter(pl.col("at") >= onset)["value"].median()
    if not isinstance(before, float) or not isinstance(after, float):
        return False
    return before < after * cfg.ratio**0.5


def _finding(rows: pl.DataFrame, where: int, level: tuple[float, float], words: str) -> Finding:
    first, last_good = rows.row(where, named=True), rows.row(where - 1, named=True)
    before, after = level
    step, many = first["at"], where >= 20 and rows.height - where >= 20
    unit = "token" if first["name"] == "tokens_per_sec" else "step"
    return Finding(
        rule="SLO001",
        shape=Shape.SLOWDOWN,
        severity=Severity.ERROR,
        confidence=Confidence.HIGH if many and words != "drifted upwards" else Confidence.MEDIUM,
        title=f"seconds per {unit} {words}: {number(before)} → {number(after)} "
        f"({after / before:.1f} times) from {at_step(step)}",
        because=f"{rows.height - where} of {rows.height} steady records are on the slow side, the last ones too",
        evidence=(
            metric_evidence(first),
            metric_evidence(last_good, EvidenceRole.RELATED),
            metric_evidence(rows.row(-1, named=True), EvidenceRole.RELATED),
        ),
        onset=Onset(step=step, t_ns=first["t_ns"], rank=first["rank"], step_lo=last_good["at"]),
        cause="slow_steps",
        numbers={"before_s": before, "after_s": after, "ratio": after / before, "records": rows.height},
        likely=_LIKELY,
        next=("look at what else ran on the hosts at the onset, and at the devices' clocks",),
    )
