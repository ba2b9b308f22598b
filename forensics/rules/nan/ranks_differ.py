"""NAN014 ranks-differ: a quantity that all ranks share began to differ between them before the run went non-finite.

What it detects: gradient norms that agreed over all ranks and then stopped to agree, before the first bad value.

Why it matters: after the gradients are averaged, all ranks hold the same ones. When they differ, the ranks train
different models: a lost synchronisation, an unlike seed or an unlike number of steps, which ends in drift or in NaN.

How it decides: per step, the range over the ranks is compared with the middle value. At least five steps must agree,
then every step up to the onset differs, and at least three do. Norms that never agreed are local ones and say nothing.

What else looks like this: norms that are printed before the gradients are averaged; these differ from the first step.

What to do next: compare seeds, data order and step counts of the ranks; check that the model is wrapped on all of them.

References: PyTorch documentation, DistributedDataParallel, "Internal Design".

Example:
    ```metrics
    seq: 1..19/2 2..20/2
    step: (1..10)*2
    rank: 0*10 1*10
    grad_norm: 1.5 1.4 1.6 1.5 1.3 1.4 1.5*2 - - 1.5 1.4 1.6 1.5 1.3 1.9 2.8 9.1 - -
    loss: (-*8 nan*2)*2
    ```
    => NAN014 info confidence=medium step=6 onset_rank=1 cause=ranks_differ causal=context ranks=2
Not this:
    ```metrics
    seq: 1..8
    step: 1 1 2 2 3 3 4 4
    rank: 0 1 0 1 0 1 0 1
    name: grad_norm*4 loss*4
    value: 1.5 1.7 1.4 1.9 nan*4
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.series import Status
from forensics.rules.kit import Findings, Onset, Run, at_step, proof, rule

_RANKS = 2


@dataclass(frozen=True, slots=True)
class Agreement:
    """Relative range over the ranks that still is agreement; steps that must agree first; steps that must differ."""

    relative: float = 1e-3
    agree: int = 5
    differ: int = 3


@rule(
    "nan",
    needs=("metrics", "events"),
    config=Agreement,
    severity="info",
    confidence="medium",
    cause="ranks_differ",
    causal="context",
)
def ranks_differ(run: Run, cfg: Agreement) -> Findings:
    """Find the step from which on the ranks no longer agreed."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    norms = _norms(found)
    first = _parting(norms, cfg)
    if first is None:
        return
    rows = norms.filter(pl.col("at") == first).sort("rank")
    low, high = rows.sort("value").row(0, named=True), rows.sort("value").row(-1, named=True)
    yield ranks_differ.finding(
        f"the gradient norms of the ranks were equal and differ from {at_step(first)} on, before the first bad value",
        "after the gradients are averaged all ranks hold the same ones",
        proof(high, low, *found.evidence()[:1]),
        Onset(step=first, t_ns=high["t_ns"], rank=high["rank"]),
        numbers={"ranks": rows.height},
    )


def _norms(found: NanOnset) -> pl.DataFrame:
    before = pl.col("at") < found.step if found.step is not None else pl.lit(value=True)
    return found.rows.filter(
        (pl.col("role") == "grad_norm") & pl.col("rank").is_not_null() & pl.col("value").is_finite() & before
    )


def _parting(norms: pl.DataFrame, cfg: Agreement) -> int | None:
    """The first of the steps at the end that all differ, when enough steps agreed before."""
    spread = (pl.col("value").max() - pl.col("value").min()) / pl.col("value").median().abs()
    steps = (
        norms.group_by("at")
        .agg(differs=spread > cfg.relative, ranks=pl.col("rank").n_unique())
        .filter((pl.col("ranks") >= _RANKS) & pl.col("at").is_not_null())
        .sort("at")
    )
    told = steps["differs"].fill_null(value=False).to_list()
    same = next((i for i in range(len(told), 0, -1) if not told[i - 1]), 0)
    if same < cfg.agree or any(told[:same]) or len(told) - same < cfg.differ:
        return None
    return int(steps["at"][same])
