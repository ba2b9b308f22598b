"""NAN016 nan-after-logprobs-fell: log-probabilities fell far below their past, then training was not finite.

What it detects: a logged log-probability (of chosen or rejected answers, of a policy, its minimum) that lies many times
lower in the last records before the first bad step than in the records before.

Why it matters: `exp()` of a large negative log-probability, or of the difference of two, leaves the finite range, in
half precision early. Neither a bad sample nor the gradient norm explains such a NaN, and clipping does not cure it.

How it decides: of every metric whose name speaks of log-probabilities, the median of the last `near` finite records
before the onset lies at least `ratio` times below the median of the first half of all records before it; or a minimum
over tokens falls below `floor`, where `exp()` is zero in fp16 and nearly so in fp32. Log-probabilities of whole answers
are sums over tokens, so that their level alone says nothing. Only in a run whose loss stays lost.

What else looks like this: answers that become longer, whose sums fall by their length.

What to do next: compute the log-softmax in fp32, clamp the difference of log-probabilities before `exp()`, lower the
learning rate.

References: axolotl, Training stability and debugging: large negative log-probabilities overflow in `exp()`.

Example:
    ```metrics
    step: 1..24
    logps/rejected: -100*16 -700*6 nan*2
    loss: 0.6*22 nan*2
    ```
    => NAN016 error confidence=medium step=23 step_lo=22 cause=log_softmax_overflow ratio=7.000
Not this:
    ```metrics
    step: 1..24
    logps/rejected: -100*16 -300*6 nan*2
    loss: 0.6*22 nan*2
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
from forensics.case.steps import SERIES, ordered
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Row, Run, at_step, number, proof, rule
from forensics.stats.spread import median


@dataclass(frozen=True, slots=True)
class Fall:
    """How far log-probabilities fall: five times is what the reference on this failure calls large.

    `floor` is below the logarithm of the smallest number of fp32 (1.2e-38, -87) by rounding: nothing is left of it.
    """

    records: int = 10
    near: int = 5
    ratio: float = 5.0
    floor: float = -80.0


@rule("nan", needs=("metrics", "events"), config=Fall, severity="error", cause="log_softmax_overflow")
def logprobs_fell(run: Run, cfg: Fall) -> Findings:
    """Find the log-probability that fell most."""
    found = nan_onset(run)
    if found is None or found.status is not Status.FAILED:
        return
    fallen = max(_fallen(run, found, cfg), key=lambda one: one[0], default=None)
    if fallen is None:
        return
    ratio, row, before = fallen
    yield logprobs_fell.finding(
        f"{row['raw_name']} fell to {number(row['value'])} at {at_step(row['at'])}, then training was not finite"
        f" from {at_step(found.step)} on",
        f"{ratio:.3g} times its {number(before)} of before: exp() of it overflows",
        proof(row, *found.evidence()),
        found.onset,
        confidence="medium",
        numbers={"ratio": ratio},
    )


def _fallen(run: Run, found: NanOnset, cfg: Fall) -> Iterator[tuple[float, Row, float]]:
    """Each one that fell: how many times, the record where it began to lie there, and its level before."""
    row = found.first.row
    own = pl.col("raw_name").str.contains(words_for("log_probability")) & (pl.col("source") == row["source"])
    rows = ordered(metric_rows(run, own).filter(pl.col("value").is_finite() & (pl.col("seq") < row["seq"]))).collect()
    for series in rows.partition_by(*SERIES, maintain_order=True):
        if series.height < cfg.records:
            continue
        before, last = median(series["value"].head(series.height // 2)), median(series["value"].tail(cfg.near))
        lowest = pl.Series([series["raw_name"][0]]).str.contains(words_for("lowest_of"))[0]
        if not (last <= cfg.ratio * before < 0 or (lowest and last < cfg.floor < before)):
            continue
        low = series.filter(pl.col("value") <= (before + last) / 2).row(0, named=True)
        yield last / min(before, -1e-9), low, before
