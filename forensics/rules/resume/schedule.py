"""What a resume loses besides the optimizer: the schedule of the learning rate, or all that was learned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from forensics.analyses.learning.lr_schedule import Again, begins_again
from forensics.analyses.resume.around import Around, around, unnumbered
from forensics.analyses.resume.levels import Levels, levels
from forensics.case.checkpoints import known
from forensics.case.folds import restarts
from forensics.case.processes.lives import Boundary
from forensics.knowledge.errors import telling
from forensics.rules.kit import (
    Evidence,
    Finding,
    Findings,
    Onset,
    Row,
    Run,
    Struct,
    checkpoint_evidence,
    event_evidence,
    proof,
    rule,
)
from forensics.rules.resume._compare import around_start, evidence_of, loaded_step, onset

_WORDS = {
    "warmup_again": "warms up again",
    "back_at_peak": "is back at its peak",
    "schedule_restarted": "goes through its schedule again",
    "lr_jump": "jumps above its old peak",
}


class SchedulerLost(Again, frozen=True):
    """Thresholds of RSM003, ratios of the learning rate after the restart to the expected one or to the peak.

    `rising` counts the records after the restart that must rise, of which there must be `rising` + 1. The fields of
    `Again` say when the rates are those of the old life's beginning. No schedule goes on at `above` times its highest
    rate, or at more than that beside a warm-up that rises in proportion to the step.
    """

    low: float = 0.5
    high: float = 1.5
    peak: float = 0.05
    decayed: float = 0.7
    rising: int = 3
    grown: float = 1.5
    above: float = 2.0


@rule("RSM003 resume-scheduler-lost", "metrics checkpoints", severity="warning")
def scheduler_lost(run: Run, cfg: SchedulerLost) -> Findings:
    """Find the first restart that lost the schedule."""
    for boundary in restarts(run):
        seen = around(run, boundary, "lr") if boundary.kind != "scratch" else None
        found = _lost(seen, cfg) if seen is not None else None
        if seen is None or found is None:
            continue
        cause, expected, new = found
        what = _WORDS[cause]
        yield scheduler_lost.finding(
            f"the learning rate {what} at the restart of step {boundary.after.first}: {expected:.3g} → {new:.3g}",
            "the same step had another rate before the restart"
            if seen.replaced.height
            else "the rate had gone on to another value before the restart",
            evidence_of(run, seen, boundary),
            onset(boundary),
            confidence="high" if seen.replaced.height else "medium",
            cause=cause,
            numbers={"expected": expected, "after": new},
        )
        return


def _lost(seen: Around, cfg: SchedulerLost) -> tuple[str, float, float] | None:
    """What happened to the rate, the expected value and the one found.

    The first record may still have the rate that was loaded, where it is printed before the scheduler moves.
    """
    old = pl.concat([seen.before, seen.replaced])
    after = seen.after["value"]
    same = seen.replaced.filter(pl.col("at") == seen.after["at"][0])
    expected = float(same["value"][0]) if same.height else float(old["value"][-1])
    found = _found(old["value"], expected, after, cfg) or _found(old["value"], expected, after.slice(1), cfg)
    risen = max(1.0, seen.after["at"][0] / max(old["at"][-1], 1))
    return found or _above(float(old["value"].max()), expected, after, risen * cfg.above)  # type: ignore[arg-type] - same


def _above(highest: float, expected: float, after: pl.Series, most: float) -> tuple[str, float, float] | None:
    """A rate that is beyond the old life's highest one from the first record on."""
    least = float(after.head(2).min())  # type: ignore[arg-type] - a column of floats
    return ("lr_jump", expected, float(after[0])) if highest > 0 and least > most * highest else None


def _found(old: pl.Series, expected: float, after: pl.Series, cfg: SchedulerLost) -> tuple[str, float, float] | None:
    if expected <= 0 or after.len() <= cfg.rising:
        return None
    new, head = float(after[0]), after.head(cfg.rising + 1)
    rises = new < cfg.low * expected and bool((head.diff().drop_nulls() > 0).all())
    if rises and float(head[-1]) >= cfg.grown * new:
        return "warmup_again", expected, new
    highest = float(old.max())  # type: ignore[arg-type] - a column of floats
    both = np.concatenate([old.to_numpy(), after.to_numpy()])
    if begins_again(both, old.len(), cfg) and abs(new - expected) > cfg.moved * expected:
        return "schedule_restarted", expected, new
    at_peak = abs(new - highest) <= cfg.peak * highest
    if new > cfg.high * expected and at_peak and expected < cfg.decayed * highest:
        return "back_at_peak", expected, new
    return None


#: A loss so far above its first level, in ways that it had fallen, is not back there.
_BEYOND = 0.5


class FromScratch(Struct, frozen=True):
    """Thresholds of RSM002: records compared, share of the way back to the first level, and standard errors.

    Of a short run a quarter of its records is compared, `fewest` at least: a median needs three. Where the program says
    that it found no checkpoint, `few` are enough.
    """

    records: int = 5
    fewest: int = 3
    few: int = 2
    back: float = 0.7
    errors: float = 6.0


@rule("RSM002 resume-from-scratch", "metrics checkpoints events", cause="restarted_from_scratch")
def from_scratch(run: Run, cfg: FromScratch) -> Findings:
    """Find the first restart that lost the weights."""
    unnumbered_restart = next(_without_steps(run, cfg), None)
    if unnumbered_restart is not None:
        yield unnumbered_restart
    if unnumbered_restart is not None or not restarts(run):
        return
    saved = known(run)
    for boundary in restarts(run):
        before = saved.filter((saved["step"] > boundary.before.first) & (saved["step"] <= boundary.before.last))
        none = _found_none(run, boundary)
        if not before.height and not loaded_step(run, boundary) and none is None:
            continue
        seen = around(run, boundary, "loss")
        found = levels(seen, records=cfg.records, errors=cfg.errors) if seen is not None else None
        if seen is not None and found is not None and _is_back(found, cfg.few if none else cfg.fewest, cfg):
            yield _finding(run, boundary, seen, found, before.row(-1, named=True) if before.height else none)
            return


def _found_none(run: Run, boundary: Boundary) -> Evidence | None:
    """The line between two lives that says that no checkpoint was found."""
    old, new = boundary.before, boundary.after
    here = (pl.col("source") == new.source) & (pl.col("seq") < new.seq_first)
    here &= (pl.col("seq") > old.seq_last) if old.source == new.source else True
    said = run.scan("events").filter(here & pl.col("code").is_in(telling("found_none"))).sort("seq").tail(1).collect()
    return event_evidence(said.row(0, named=True)) if said.height else None


def _without_steps(run: Run, cfg: FromScratch) -> Iterator[Finding]:
    for start, seen in unnumbered(run):
        found = levels(seen, records=cfg.records, errors=cfg.errors)
        if found is not None and _is_back(found, cfg.fewest, cfg):
            yield from_scratch.finding(
                f"a checkpoint was loaded, and the loss is back at {found.new:.4g} after {found.last:.4g}",
                f"the run's first losses were {found.first:.4g}; the log numbers no steps",
                around_start(seen, start),
                Onset(t_ns=seen.after["t_ns"][0]),
                severity="warning",
                confidence="medium",
                numbers={"first": found.first, "last": found.last, "after": found.new},
            )


def _is_back(found: Levels, fewest: int, cfg: FromScratch) -> bool:
    """Whether the loss is where it was when the run began."""
    if found.is_same:
        return True
    near = cfg.back <= found.back and found.new - found.first <= _BEYOND * (found.first - found.last)
    return near and found.count >= fewest and found.is_clear


def _finding(run: Run, boundary: Boundary, seen: Around, found: Levels, there: Row | Evidence | None) -> Finding:
    first, last, new = found.first, found.last, found.new
    none = there if isinstance(there, Evidence) else None
    saved = None if isinstance(there, Evidence) else there
    steps = boundary.before.last if saved is None else saved["step"]
    path = saved["path"] if saved is not None else None
    had = "no checkpoint was found to go on from" if none else f"a checkpoint of step {steps} was there to go on from"
    again = f"resume from {path}" if path else f"resume from the checkpoint of step {steps}"
    return from_scratch.finding(
        f"the restart at step {boundary.after.first} began anew: the loss is back at {new:.4g} after {last:.4g}",
        f"the run's first losses were {first:.4g}; {had}",
        proof(*evidence_of(run, seen, boundary), none, checkpoint_evidence(saved) if saved is not None else None),
        onset(boundary),
        severity="warning" if boundary.kind == "scratch" else "error",
        confidence="medium" if boundary.kind == "scratch" else "high",
        numbers={"first": first, "last": last, "after": new, "steps_lost": boundary.before.last},
        next=("check the folder in which the program looks for checkpoints" if none else again,),
    )
