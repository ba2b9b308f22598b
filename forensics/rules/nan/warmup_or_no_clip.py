"""NAN012 nan-in-warmup-or-unclipped: what the learning rate and the clipping were when training went non-finite.

What it detects: a first bad step inside the warm-up or just after its end, a configuration without warm-up, and a
configuration that switches gradient clipping off.

Why it matters: a learning rate that is too high for its warm-up is the most common cause of a blow-up, and the clip
is the most common remedy. Both can be read off the run.

How it decides: the logged learning rate still rises at the onset, or reached its peak within `after_peak` of the
steps before it (one that is held reached it at the end of its warm-up); a key `max_grad_norm`, `clip_grad`,
`gradient_clipping` or `warmup` is zero. Only together with a NaN that stays, and not from the first record on.

What else looks like this: a bad sample that happens to fall into the warm-up; NAN003 then says that nothing rose.

What to do next: halve the learning rate or double the warm-up, and clip at 1.0.

References: Goyal et al., "Accurate, Large Minibatch SGD" (2017), on warm-up.

Example:
    ```metrics
    step: 10..50/10
    lr: 0.0001..0.0004/0.0001 -
    loss: 4.0 3.9 3.8 nan nan
    ```
    => NAN012 info confidence=low step=40 step_lo=30 cause=warmup_too_short causal=context
Not this:
    ```metrics
    step: 10..50/10
    lr: 0.0004..0.0001/-0.0001 -
    loss: 4.0 3.9 3.8 nan nan
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.series import Status
from forensics.case.series import metric_rows
from forensics.case.settings import OFF, stated
from forensics.case.steps import ordered
from forensics.rules.kit import Evidence, Findings, Run, fact_evidence, metric_evidence, number, proof, rule

#: A rate that is held goes on by rounding.
_AT_PEAK = 0.999


@dataclass(frozen=True, slots=True)
class Warmup:
    """How soon after the peak of the learning rate an onset still counts as warm-up, as a share of the steps so far."""

    after_peak: float = 0.1


@rule("nan", needs=("metrics", "events", "facts"), config=Warmup, severity="info", confidence="low", causal="context")
def warmup_or_no_clip(run: Run, cfg: Warmup) -> Findings:
    """Say what the learning rate and the clip were at the onset."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED or found.n_before <= 1:
        return
    warming = [*_warming(run, cfg, found)]
    said = [*warming, *_switched_off(run)]
    if not said:
        return
    yield warmup_or_no_clip.finding(
        "; ".join(words for words, _ in said),
        "these make a blow-up more likely; they do not prove one",
        proof(*(evidence for _, evidence in said), found.evidence()[0]),
        found.onset,
        cause="warmup_too_short" if warming else "learning_rate_or_clip",
    )


def _warming(run: Run, cfg: Warmup, found: NanOnset) -> Iterator[tuple[str, Evidence]]:
    step, row = found.step, found.first.row
    own = metric_rows(run, (pl.col("name") == "lr") & (pl.col("source") == row["source"])).filter(
        pl.col("value").is_finite()
    )
    rates = ordered(own).filter(pl.col("at") <= (step or 0)).collect()
    if step is None or rates.height < 3 or rates["value"].max() == rates["value"].min():
        return
    peak = rates.filter(pl.col("value") >= _AT_PEAK * pl.col("value").max()).row(0, named=True)
    if step - peak["at"] <= cfg.after_peak * max(1, step) and rates["value"][0] < peak["value"]:
        words = f"the learning rate was at its peak so far, {number(peak['value'])}, after a rise"
        yield words, metric_evidence(peak)


def _switched_off(run: Run) -> Iterator[tuple[str, Evidence]]:
    for name, words in (("clip", "gradient clipping is off"), ("warmup", "there is no warm-up")):
        rows = stated(run, name).filter((pl.col("family") == "config") & pl.col("said").is_in(OFF)).head(1)
        yield from ((words, fact_evidence(row)) for row in rows.iter_rows(named=True))
