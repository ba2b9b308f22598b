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
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.0
    1,0,10,loss,1.99
    2,0,20,loss,1.98
    3,0,30,loss,1.97
    4,0,40,loss,1.96
    5,0,50,loss,1.95
    6,0,60,loss,1.94
    7,0,70,loss,1.93
    8,0,80,loss,1.92
    9,0,90,loss,1.91
    10,0,100,loss,1.9
    11,0,110,loss,1.89
    12,0,120,loss,1.88
    13,0,130,loss,1.87
    14,0,140,loss,1.86
    15,0,150,loss,1.85
    16,0,160,loss,1.84
    17,0,170,loss,1.83
    18,0,180,loss,1.82
    19,0,190,loss,1.81
    20,0,200,loss,1.8
    21,0,210,loss,1.79
    22,0,220,loss,1.78
    23,0,230,loss,1.77
    24,0,240,loss,1.76
    25,0,250,loss,1.75
    26,0,260,loss,1.74
    27,0,270,loss,1.73
    28,0,280,loss,1.72
    29,0,290,loss,1.71
    30,1,110,loss,1.89
    31,1,120,loss,1.88
    32,1,130,loss,1.87
    33,1,140,loss,1.86
    34,1,150,loss,1.85
    35,1,160,loss,1.84
    36,1,170,loss,1.83
    37,1,180,loss,1.82
    38,1,190,loss,1.81
    39,1,200,loss,1.8
    40,1,210,loss,1.79
    41,1,220,loss,1.78
    42,1,230,loss,1.77
    43,1,240,loss,1.76
    44,1,250,loss,1.75
    45,1,260,loss,1.74
    46,1,270,loss,1.73
    47,1,280,loss,1.72
    48,1,290,loss,1.71
    49,1,300,loss,1.7
    50,1,310,loss,1.69
    51,1,320,loss,1.68
    ```
    ```checkpoints seq,step,path,kind
    1,100,ckpt/step-100,saved
    ```
    => RSM008 info confidence=medium step=110 step_lo=100 cause=rare_checkpoints causal=context steps_lost=190
Not this:
    ```metrics seq,attempt,step,name,value
    0,0,0,loss,2.0
    1,0,10,loss,1.99
    2,0,20,loss,1.98
    3,0,30,loss,1.97
    4,0,40,loss,1.96
    5,0,50,loss,1.95
    6,0,60,loss,1.94
    7,0,70,loss,1.93
    8,0,80,loss,1.92
    9,0,90,loss,1.91
    10,0,100,loss,1.9
    11,0,110,loss,1.89
    12,0,120,loss,1.88
    13,0,130,loss,1.87
    14,0,140,loss,1.86
    15,0,150,loss,1.85
    16,0,160,loss,1.84
    17,0,170,loss,1.83
    18,0,180,loss,1.82
    19,0,190,loss,1.81
    20,0,200,loss,1.8
    21,0,210,loss,1.79
    22,0,220,loss,1.78
    23,0,230,loss,1.77
    24,0,240,loss,1.76
    25,0,250,loss,1.75
    26,0,260,loss,1.74
    27,0,270,loss,1.73
    28,0,280,loss,1.72
    29,0,290,loss,1.71
    30,1,290,loss,1.7
    31,1,300,loss,1.69
    32,1,310,loss,1.68
    33,1,320,loss,1.67
    34,1,330,loss,1.66
    35,1,340,loss,1.65
    36,1,350,loss,1.64
    37,1,360,loss,1.63
    38,1,370,loss,1.62
    39,1,380,loss,1.61
    40,1,390,loss,1.6
    41,1,400,loss,1.59
    42,1,410,loss,1.58
    43,1,420,loss,1.57
    44,1,430,loss,1.56
    45,1,440,loss,1.55
    46,1,450,loss,1.54
    47,1,460,loss,1.53
    48,1,470,loss,1.52
    49,1,480,loss,1.51
    50,1,490,loss,1.5
    51,1,500,loss,1.49
    ```
    ```checkpoints seq,step,path,kind
    1,280,ckpt/step-280,saved
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forensics.case.checkpoints import known
from forensics.case.end_markers import ending_of
from forensics.case.evidence import checkpoint_evidence, metric_evidence
from forensics.case.lives import Life, boundaries, lives, rows_of
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run

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


@rule("RSM008", shape=Shape.LEARNING, needs=("metrics", "checkpoints", "events"), config=Config)
def rare_checkpoints(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the life that lost most."""
    cfg = cfg or Config()
    saved = known(run)
    if not saved.height:
        return
    every = lives(run)
    ended = [b.before for b in boundaries(run) if b.kind == "replays"]
    if every and not ended and ending_of(run).final is None and _errors(run):
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
    return Finding(
        rule="RSM008",
        shape=Shape.LEARNING,
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM,
        title=f"{worst.steps} steps{time} after the checkpoint of step {worst.checkpoint} were lost",
        because=f"the records reach step {worst.life.last}, and no later checkpoint is known",
        evidence=(
            metric_evidence(last),
            metric_evidence(first, EvidenceRole.RELATED),
            checkpoint_evidence(point),
        ),
        onset=Onset(step=first["at"], t_ns=first["t_ns"], rank=worst.life.rank, step_lo=worst.checkpoint),
        cause="rare_checkpoints",
        causal=Causal.CONTEXT,
        numbers={"steps_lost": worst.steps} | ({"hours_lost": worst.hours} if worst.hours is not None else {}),
        likely=("checkpoints are saved too rarely for how often the run fails",),
        next=("save more often, and test the resume before it is needed",),
    )
