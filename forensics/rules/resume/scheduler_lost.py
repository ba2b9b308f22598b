"""RSM003 resume-scheduler-lost: after a resume the learning rate starts its schedule again.

What it detects: a learning rate that after a restart warms up again from near zero, or is back at its peak although it
had decayed.

Why it matters: a second warm-up wastes steps; a rate that jumps back to its peak can throw the model out of what it had
reached, and the schedule ends elsewhere than planned.

How it decides: the rate is compared with that of the same step in the old life, else with the last one before. Less
than half of it and rising over the next records: a new warm-up. More than 1.5 times it and within 5 % of the highest
rate before, after a decay below 0.7 of that: back at the peak. Four records that are those with which the old life
began: the whole schedule again. A run that counts its steps anew is left to other rules.

What else looks like this: a planned new warm-up for continued training; a schedule with restarts of its own.

What to do next: save and load the scheduler's state, or give it the step to go on from (`last_epoch`).

References: PyTorch documentation, `torch.optim.lr_scheduler`, `state_dict` and `last_epoch`.

Example:
    ```metrics
    attempt: 0*24 1*10
    step: 0..23 20..29
    lr: 0.001 0.000983 0.000967 0.00095 0.000933 0.000917 0.0009 0.000883 0.000867 0.00085 0.000833 0.000817 0.0008
        0.000783 0.000767 0.00075 0.000733 0.000717 0.0007 0.000683 0.000667 0.00065 0.000633 0.000617
        0.0001..0.001/0.0001
    ```
    => RSM003 warning confidence=high step=20 cause=warmup_again expected=0.0006670 after=0.0001000
Not this:
    ```metrics
    attempt: 0*24 1*10
    step: 0..23 20..29
    lr: 0.001 0.000983 0.000967 0.00095 0.000933 0.000917 0.0009 0.000883 0.000867 0.00085 0.000833 0.000817 0.0008
        0.000783 0.000767 0.00075 0.000733 0.000717 0.0007 0.000683 0.000667 0.00065 0.000633 0.000617 0.000667
        0.00065 0.000633 0.000617 0.0006 0.000583 0.000567 0.00055 0.000533 0.000517
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.resume.around import Around, around
from forensics.case.processes.lives import restarts
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.resume._compare import evidence_of, onset

_WORDS = {
    "warmup_again": "warms up again",
    "back_at_peak": "is back at its peak",
    "schedule_restarted": "goes through its schedule again",
}


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM003, ratios of the learning rate after the restart to the expected one or to the peak.

    `rising` counts the records after the restart that must rise, of which there must be `rising` + 1. So many `records`
    within the share `same` of the first ones of the old life are its schedule again, where the rate `moved` by a share.
    """

    low: float = 0.5
    high: float = 1.5
    peak: float = 0.05
    decayed: float = 0.7
    rising: int = 3
    grown: float = 1.5
    same: float = 0.02
    moved: float = 0.1
    records: int = 4


@rule("learning", needs=("metrics", "checkpoints"), config=Config, severity="warning")
def scheduler_lost(run: Run, cfg: Config) -> Findings:
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


def _lost(seen: Around, cfg: Config) -> tuple[str, float, float] | None:
    """What happened to the rate, the expected value and the one found.

    The first record may still have the rate that was loaded, where it is printed before the scheduler moves.
    """
    old = pl.concat([seen.before, seen.replaced])
    after = seen.after["value"]
    same = seen.replaced.filter(pl.col("at") == seen.after["at"][0])
    expected = float(same["value"][0]) if same.height else float(old["value"][-1])
    return _found(old["value"], expected, after, cfg) or _found(old["value"], expected, after.slice(1), cfg)


def _found(old: pl.Series, expected: float, after: pl.Series, cfg: Config) -> tuple[str, float, float] | None:
    if expected <= 0 or after.len() <= cfg.rising:
        return None
    new, head = float(after[0]), after.head(cfg.rising + 1)
    rises = new < cfg.low * expected and bool((head.diff().drop_nulls() > 0).all())
    if rises and float(head[-1]) >= cfg.grown * new:
        return "warmup_again", expected, new
    highest = float(old.max())  # type: ignore[arg-type] - a column of floats
    if _repeats(old, after, cfg) and abs(new - expected) > cfg.moved * expected:
        return "schedule_restarted", expected, new
    at_peak = abs(new - highest) <= cfg.peak * highest
    if new > cfg.high * expected and at_peak and expected < cfg.decayed * highest:
        return "back_at_peak", expected, new
    return None


def _repeats(old: pl.Series, after: pl.Series, cfg: Config) -> bool:
    """Whether the rate changes as it did when the old life began, from its first record or one of the two after it."""
    new = after.head(cfg.records)
    if new.len() < cfg.records or new.n_unique() < cfg.records - 1:
        return False
    begins = (old.slice(skip, cfg.records) for skip in range(3))
    return any(own.len() == cfg.records and bool(((own - new).abs() <= cfg.same * own.abs()).all()) for own in begins)
