"""Results of another checkpoint than the one that they are taken for."""

from __future__ import annotations

import polars as pl

from forensics.analyses.evals.causes import diagnosed
from forensics.analyses.evals.sittings import evaluated_step, filed_step, of_wrong_checkpoint, weights_of
from forensics.rules.bad_eval._results import NEEDS, result_evidence
from forensics.rules.bad_eval.falls import Fallen
from forensics.rules.kit import Findings, Onset, Run, Struct, checkpoint_evidence, proof, rule


@rule("EVL015 eval-of-another-step", NEEDS, cause="wrong_checkpoint")
def wrong_checkpoint(run: Run, cfg: Fallen) -> Findings:
    """Report each file of results that is filed under another step than its weights have."""
    found = diagnosed(run)
    fall = found.fall if found is not None and found.is_of_wrong_weights else None
    is_far = fall is not None and fall.errors >= cfg.errors and fall.lost >= cfg.lost
    rows = run.collect("evals").unique(["source", "step"], keep="first", maintain_order=True)
    for row in of_wrong_checkpoint(rows.to_dicts()):
        filed, made = filed_step(row), evaluated_step(row)
        yield wrong_checkpoint.finding(
            f"results filed under step {filed} were made of the checkpoint of step {made}",
            f"the weights that were loaded are {weights_of(row)}" + ("; the scores fell with it" if is_far else ""),
            proof(result_evidence(row)),
            Onset(step=filed),
            severity="error" if is_far else "warning",
            confidence="high" if is_far else "medium",
            numbers={} if filed is None or made is None else {"filed": filed, "evaluated": made},
            next=(f"evaluate the checkpoint of step {filed}",),
        )


class EarlierCheckpoint(Struct, frozen=True):
    """Threshold of EVL025: the share of the last checkpoint's step that must have been evaluated."""

    share: float = 0.75


@rule(
    "EVL025 earlier-checkpoint-evaluated",
    "evals checkpoints",
    confidence="medium",
    cause="earlier_checkpoint",
    causal="context",
)
def earlier_checkpoint(run: Run, cfg: EarlierCheckpoint) -> Findings:
    """Compare the latest evaluated step with the last checkpoint."""
    evals = run.scan("evals").filter(pl.col("step").is_not_null() & pl.col("value").is_not_null()).collect()
    whole = pl.col("complete").fill_null(value=True)
    saved = run.scan("checkpoints").filter(pl.col("step").is_not_null() & whole).collect()
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
        severity="warning" if is_only else "info",
        numbers={"evaluated": row["step"], "last": last["step"]},
        next=(f"evaluate the checkpoint of step {last['step']} with the same command",),
    )
