"""RSM008 resume-rare-checkpoints: much work was lost between the last checkpoint and the end.

What it detects: steps that were trained after the last checkpoint and lost, at a restart or where the run ended without
saying that it finished.

Why it matters: failures are a matter of time on long runs; what lies between two checkpoints is paid twice.

How it decides: the steps from the last known checkpoint to the last record of that life; told when they are more than
5 % of all steps or, by the records' clock, more than an hour. A run with no checkpoint at all is not judged, for its
trainer may print nothing about them.

What else looks like this: a run that is still going on; a trainer that saves in silence.

What to do next: save more often: the best interval is near the square root of twice the time of a save times the mean
time between failures. Test the resume before it is needed.

References: Young 1974, "A first order approximation to the optimum checkpoint interval"; Daly 2006.

Example:
    ```metrics
    attempt: 0*30 1*22
    step: 0..290/10 110..320/10
    loss: 2.0..1.71/-0.01 1.89..1.68/-0.01
    ```
    ```checkpoints seq,step,path,kind
    1,100,ckpt/step-100,saved
    ```
    => RSM008 info confidence=medium step=110 step_lo=100 cause=rare_checkpoints causal=context steps_lost=190
Not this:
    ```metrics
    attempt: 0*30 1*22
    step: 0..290/10 290..500/10
    loss: 2.0..1.49/-0.01
    ```
    ```checkpoints seq,step,path,kind
    1,280,ckpt/step-280,saved
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.case.checkpoints import known
from forensics.case.end_markers import marks_of
from forensics.case.processes.lives import Life, boundaries, lives, rows_of
from forensics.rules.kit import Finding, Findings, Run, checkpoint_evidence, onset_at, proof, rule

_NS_PER_HOUR = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM008: the share of all steps, or the hours, whose loss is told, and steps that are too few."""

    share: float = 0.05
    hours: float = 1.0
    steps: int = 20


@dataclass(frozen=True, slots=True)
class _Loss:
    life: Life
    checkpoint: int
    steps: int
    hours: float | None


@rule(
    "learning",
    needs=("metrics", "checkpoints", "events"),
    config=Config,
    severity="info",
    confidence="medium",
    cause="rare_checkpoints",
    causal="context",
)
def rare_checkpoints(run: Run, cfg: Config) -> Findings:
    """Find the life that lost most."""
    saved = known(run)
    if not saved.height:
        return
    every = lives(run)
    ended = [b.before for b in boundaries(run) if b.kind == "replays"]
    if every and not ended and marks_of(run).final is None and _errors(run):
        ended = [max(every, key=lambda life: life.last)]
    last = max((life.last for life in every), default=0)
    losses = [loss for life in ended if (loss := _loss(run, life, saved)) is not None]
    worst = max(losses, key=lambda loss: loss.steps, default=None)
    if worst is None or worst.steps < cfg.steps:
        return
    if worst.steps > cfg.share * last or (worst.hours or 0.0) > cfg.hours:
        yield _finding(run, worst, saved)


def _errors(run: Run) -> bool:
    """Whether the run prints any error or stop of its own."""
    bad = run.scan("events").select(pl.col("level").str.to_lowercase().is_in(["error", "fatal", "critical"]).any())
    return bool(bad.collect().item())


def _loss(run: Run, life: Life, saved: pl.DataFrame) -> _Loss | None:
    before = saved.filter((pl.col("step") <= life.last) & (pl.col("step") >= life.first))
    if not before.height:
        return None
    step = int(before["step"][-1])
    rows = rows_of(run, life, "loss", "reward", "grad_norm", "lr").filter(pl.col("t_ns").is_not_null())
    since = rows.filter(pl.col("at") >= step)["t_ns"]
    hours = (since[-1] - since[0]) / _NS_PER_HOUR if since.len() > 1 else None
    return _Loss(life, step, life.last - step, hours)


def _finding(run: Run, worst: _Loss, saved: pl.DataFrame) -> Finding:
    rows = rows_of(run, worst.life, "loss", "reward", "grad_norm", "lr").filter(pl.col("at") > worst.checkpoint)
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    point = saved.filter(pl.col("step") == worst.checkpoint).row(0, named=True)
    time = f" ({worst.hours:.1f} hours)" if worst.hours is not None else ""
    return rare_checkpoints.finding(
        f"{worst.steps} steps{time} after the checkpoint of step {worst.checkpoint} were lost",
        f"the records reach step {worst.life.last}, and no later checkpoint is known",
        proof(last, first, checkpoint_evidence(point)),
        onset_at(first, worst.checkpoint),
        numbers={"steps_lost": worst.steps} | ({"hours_lost": worst.hours} if worst.hours is not None else {}),
    )
