"""EVL025 earlier-checkpoint-evaluated: the results are of a checkpoint from long before the end of training.

What it detects: evaluation results whose latest step lies well before the last checkpoint of the run.

Why it matters: the score is read as that of the finished model, and is the score of a half-trained one.

How it decides: the results name a step, the run saved a later checkpoint, and the evaluated step is below three
quarters of that one. It is a note where several steps were evaluated, as a series may not be done yet.

What else looks like this: an evaluation that was made on purpose of an early checkpoint.

What to do next: evaluate the last complete checkpoint with the same command.

References: lm-evaluation-harness, `model_args` (`pretrained`, `revision`).

Example:
    ```evals source,line,task,metric,value,stderr,step
    results.json,7,arc_easy,acc,0.55,0.01,2000
    ```
    ```checkpoints source,seq,step,path
    train.log,1,2000,out/checkpoint-2000
    train.log,2,8000,out/checkpoint-8000
    ```
    => EVL025 warning confidence=medium step=2000 cause=earlier_checkpoint causal=context evaluated=2000 last=8000
Not this:
    ```evals source,line,task,metric,value,stderr,step
    results.json,7,arc_easy,acc,0.55,0.01,8000
    ```
    ```checkpoints source,seq,step,path
    train.log,1,2000,out/checkpoint-2000
    train.log,2,8000,out/checkpoint-8000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Findings, Onset, Run, checkpoint_evidence, proof, rule


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of EVL025: the share of the last checkpoint's step that must have been evaluated."""

    share: float = 0.75


@rule(
    "bad_eval",
    needs=("evals", "checkpoints"),
    config=Config,
    confidence="medium",
    cause="earlier_checkpoint",
    causal="context",
)
def earlier_checkpoint(run: Run, cfg: Config) -> Findings:
    """Compare the latest evaluated step with the last checkpoint."""
    evals = run.scan("evals").filter(pl.col("step").is_not_null() & pl.col("value").is_not_null()).collect()
    saved = (
        run.scan("checkpoints")
        .filter(pl.col("step").is_not_null() & (pl.col("complete").fill_null(value=True)))
        .collect()
    )
    if evals.height == 0 or saved.height == 0:
        return
    row = evals.sort("step", maintain_order=True).row(-1, named=True)
    last = saved.sort("step", maintain_order=True).row(-1, named=True)
    if row["step"] >= cfg.share * last["step"]:
        return
    is_only = evals["step"].n_unique() == 1
    yield earlier_checkpoint.finding(
        f"the checkpoint of step {row['step']} was evaluated, the last one is of step {last['step']}",
        "a much later checkpoint exists and was not evaluated",
        proof(result_evidence(row), checkpoint_evidence(last)),
        Onset(step=row["step"]),
        severity="warning" if is_only else "info",
        numbers={"evaluated": row["step"], "last": last["step"]},
        next=(f"evaluate the checkpoint of step {last['step']} with the same command",),
    )
