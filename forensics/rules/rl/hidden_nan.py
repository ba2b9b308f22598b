"""RLX010 rl-hidden-nan: a loss is not finite, and the trainer does not show it.

What it detects: a share of non-finite losses above zero, or a gradient norm that is NaN beside a loss that is finite,
in a run of reinforcement learning.

Why it matters: the trainer replaces a NaN loss by the running mean of the others and still makes the step, so the loss
curve stays clean while the weights are lost.

How it decides: the share of non-finite losses is above zero in any record; an error when it is so in more than half of
the last 20. Or the gradient norm is NaN (an infinite one is normal under loss scaling) at two steps or more, or at the
last one, beside a finite loss of the same record: a warning.

What else looks like this: a loss and gradient norm of zero, which is a batch without advantage.

What to do next: set `logging_nan_inf_filter=False`, and restart from a checkpoint before the first such step.

References: TRL, GRPO and RLOO trainers, logged metrics; Transformers documentation,
`TrainingArguments.logging_nan_inf_filter`.

Example:
    ```metrics
    step: 1..8
    frac_reward_zero_std: 0.25
    frac_non_finite_loss: 0.0*3 0.5*5
    ```
    => RLX010 warning confidence=medium step=4 step_lo=3 cause=filtered_by_writer last=0.5000 share=0.6250
Example:
    ```metrics
    step: 1..8
    frac_reward_zero_std: 0.25
    loss: 0.01
    grad_norm: 0.5*5 nan*3
    ```
    => RLX010 warning confidence=medium step=6 step_lo=5 cause=filtered_by_writer first=0.5000 last=NaN
Not this:
    ```metrics
    step: 1..8
    frac_reward_zero_std: 0.25 1.0 0.25 1.0 0.25 1.0 0.25 1.0
    loss: 0.01 0.0 0.01 0.0 0.01 0.0 0.01 0.0
    grad_norm: 0.5 0.0 0.5 0.0 0.5 0.0 0.5 0.0
    frac_non_finite_loss: 0.0
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Evidence, EvidenceRole, Finding, Findings, Run, Severity, Shape, metric_evidence, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median


@rule("nan", needs=("metrics",), config=Persistence)
def hidden_nan(run: Run, cfg: Persistence) -> Findings:
    """Find losses that were replaced before they were logged."""
    every = rl_series(run, "bad_loss", "grad_norm", "loss")
    for series in (s for s in every if s.quantity == "bad_loss"):
        bad = series.finite["value"] > 0
        if bad.any():
            lasting = series.finite.height >= cfg.last and float(bad.tail(cfg.last).sum()) > cfg.most * cfg.last
            hit = _hit(series, series.finite, bad)
            yield _finding(hit, Severity.ERROR if lasting else Severity.WARNING)
            return
    losses = [s for s in every if s.quantity == "loss"]
    for series in (s for s in every if s.quantity == "grad_norm"):
        masked = [found for loss in losses if (found := _masked(series, loss)) is not None]
        if masked:
            hit, beside = masked[0]
            yield _finding(hit, Severity.WARNING, metric_evidence(beside.row(0, named=True), EvidenceRole.RELATED))
            return


def _finding(hit: Hit, severity: Severity, *others: Evidence) -> Finding:
    return replace(finding_of(hit, severity, cause="filtered_by_writer", others=others), shape=Shape.NAN)


def _masked(grads: RlSeries, loss: RlSeries) -> tuple[Hit, pl.DataFrame] | None:
    """A NaN gradient norm in records whose loss is finite, twice or to the end; with the loss rows beside it."""
    keys = ["source", "attempt", "seq"]
    bad = grads.rows["value"].is_nan()
    beside = loss.finite.join(grads.rows.filter(bad), on=keys, how="semi", maintain_order="left")
    if not beside.height or (beside.height < 2 and not bad[-1]):
        return None
    return _hit(grads, grads.rows, bad), beside


def _hit(series: RlSeries, rows: pl.DataFrame, bad: pl.Series) -> Hit:
    values = series.finite["value"]
    last = float(rows["value"][-1])
    share = float(bad.sum()) / bad.len()
    return Hit(range_of("bad_loss"), series, rows, True, int(bad.arg_true()[0]), median(values.head(1)), last, share)  # noqa: FBT003 - the field is named red
