"""EVL027 eval-loss-not-a-number: the evaluation loss is NaN or infinite while the training loss stays finite.

What it detects: a held-out loss without a value, beside a training loss that is finite to its end.

Why it matters: the model trains, but nothing checks it: early stopping, the choice of the best checkpoint and every
comparison rest on a number that is none. It is no divergence of training, and a lower learning rate does not mend it.

How it decides: the last evaluation is not finite: an error; an earlier one only, or that of one evaluation set among
others whose loss is finite: a warning. From the first evaluation on, it is the evaluation set or its labels; after
finite ones, precision or weights. A single evaluation before the first training record is left out.

What else looks like this: NaN in training, which NAN001 tells; scores of classes without a sample; a perplexity that is
infinite only because the exponential of a finite loss overflows.

What to do next: print the number of evaluation batches and of labels that are not masked, then evaluate one batch in
float32.

References: PyTorch, `CrossEntropyLoss` (the mean over targets that are all `ignore_index` is NaN); IEEE 754, binary16
(largest value 65504).

Example:
    ```metrics source,line,seq,step,name,raw_name,value
    a.log,1,1,10,loss,loss,2.5
    a.log,2,2,10,eval_loss,eval_loss,nan
    a.log,3,3,20,loss,loss,2.4
    a.log,4,4,20,eval_loss,eval_loss,nan
    a.log,5,5,30,loss,loss,2.3
    ```
    => EVL027 error confidence=high step=10 cause=eval_loss_nan evaluations=2 not_finite=2
Example: it was finite again
    ```metrics source,line,seq,step,name,raw_name,value
    a.log,1,1,10,loss,loss,2.5
    a.log,2,2,10,eval_loss,eval_loss,nan
    a.log,3,3,20,loss,loss,2.4
    a.log,4,4,20,eval_loss,eval_loss,2.6
    a.log,5,5,30,loss,loss,2.3
    ```
    => EVL027 warning confidence=medium step=10 cause=eval_loss_nan evaluations=2 not_finite=1
Not this: training is lost too
    ```metrics source,line,seq,step,name,raw_name,value
    a.log,1,1,10,loss,loss,2.5
    a.log,2,2,20,loss,loss,nan
    a.log,3,3,20,eval_loss,eval_loss,nan
    a.log,4,4,30,loss,loss,nan
    ```
    => nothing
"""

from __future__ import annotations

from typing import Any

import polars as pl

from forensics.case.nonfinite import watched, watched_series
from forensics.case.steps import SERIES
from forensics.rules.kit import Finding, Findings, Onset, Run, Severity, at_step, proof, rule

#: So many finite training losses at the end show that training is sound.
_SOUND = 3
_SHOWN = 3


@rule("bad_eval", needs=("metrics",), cause="eval_loss_nan")
def eval_loss_nan(run: Run) -> Findings:
    """Find the evaluation loss that is no number although the training loss is one."""
    if not watched_series(run).filter((pl.col("role") == "eval") & (pl.col("n_bad") > 0)).height:
        return
    rows = watched(run).filter(pl.col("role").is_in(["loss", "eval"])).collect()
    training = rows.filter(pl.col("role") == "loss")
    series = [own for _, own in rows.filter(pl.col("role") == "eval").group_by(*SERIES, maintain_order=True)]
    bad = [own for own in series if own["bad"].any() and not _before_training(own, training)]
    if not bad or not _is_sound(training):
        return
    lost = [own for own in bad if own["bad"][-1]]
    worst = max(lost or bad, key=lambda own: own["bad"].sum())
    finite_too = any(not own["bad"][-1] for own in series)
    yield _finding(worst, Severity.ERROR if lost and not finite_too else Severity.WARNING)


def _before_training(own: pl.DataFrame, training: pl.DataFrame) -> bool:
    """Whether the only evaluation stands before the first training record of its source."""
    first = training.filter(pl.col("source") == own["source"][0])["seq"].min()
    return own.height == 1 and first is not None and own["seq"][0] < first


def _is_sound(training: pl.DataFrame) -> bool:
    """Whether every training loss, of which there are enough, is finite to its end."""
    ends = [own["bad"].tail(_SOUND) for _, own in training.group_by(*SERIES, maintain_order=True)]
    return bool(ends) and max(map(len, ends)) >= _SOUND and not any(end.any() for end in ends)


def _finding(own: pl.DataFrame, severity: Severity) -> Finding:
    rows: list[dict[str, Any]] = own.filter("bad").to_dicts()
    first, always = rows[0], len(rows) == own.height
    finite = own.filter(~pl.col("bad") & (pl.col("seq") < first["seq"])).tail(1).to_dicts()
    what = "infinite" if first["value_class"] in ("+inf", "-inf") else "NaN"
    where = "in every evaluation" if always else f"from {at_step(first['at'])} on"
    if not own["bad"][-1]:
        where = f"at {at_step(first['at'])}" + (f" and {len(rows) - 1} more times" if len(rows) > 1 else "")
    return eval_loss_nan.finding(
        f"{first['raw_name'] or first['name']} is {what} {where}, while the training loss stays finite",
        f"{len(rows)} of {own.height} evaluations give no number: "
        + ("the evaluation set, its labels or its precision" if always else "precision, weights or single batches"),
        proof(*rows[:_SHOWN], *finite),
        Onset(step=first["at"], t_ns=first["t_ns"], step_lo=finite[0]["at"] if finite else None),
        severity=severity,
        confidence="high" if len(rows) > 1 else "medium",
        numbers={"evaluations": own.height, "not_finite": len(rows)},
    )
