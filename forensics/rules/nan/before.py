"""What came before the first value that was not finite."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import polars as pl

from forensics.analyses.nan.kind import Alarm, climbed_from, kind_of
from forensics.analyses.nan.onset import NanOnset, lost
from forensics.case.series import holding, metric_rows
from forensics.case.steps import SERIES, ordered
from forensics.knowledge.ranges import range_of
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Row, Run, Struct, at_step, number, proof, remark, rule
from forensics.stats.spread import median

#: Tables that what came before is read from.
_NEEDS = "metrics events checkpoints"


@rule(
    "NAN002 nan-after-gradnorm-spike", _NEEDS, about=lost, config=Alarm, severity="error", cause="optimization_blowup"
)
def gradnorm_spike(run: Run, found: NanOnset) -> Findings:
    """Find the rise that came before the first non-finite step."""
    rise = kind_of(run).precursor
    if rise is None:
        return
    what = {"grad_norm": "gradient norm", "lr": "learning rate"}.get(rise.metric, "loss")
    lead = "a record" if rise.lead == 1 else f"{rise.lead} records"
    above = f"{rise.z:.1f} robust standard deviations above its past" if isfinite(rise.z) else "at once above its peak"
    told, climbed = f"{above}, {lead} before the first bad one", climbed_from(run, found)
    if climbed is not None and climbed != rise.step:
        told = f"the loss rose from {at_step(climbed)} on"
    yield gradnorm_spike.finding(
        f"the {what} rose to {number(rise.row['value'])} at {at_step(rise.step)}, {rise.ratio:.3g} times its usual"
        f" value; values were not finite from {at_step(found.step)} on",
        f"{told}: an optimization blow-up, not a bad sample",
        proof(rise.row, *found.evidence()),
        found.onset,
        confidence="high" if rise.metric == "grad_norm" else "medium",
        numbers={"ratio": rise.ratio, "lead_records": rise.lead} | ({"z": rise.z} if isfinite(rise.z) else {}),
        next=("forensics nan-origin RUN",),
    )


@rule("NAN003 nan-flat-gradnorm", _NEEDS, about=lost, config=Alarm, severity="error", cause="data_or_numerics")
def flat_gradnorm(run: Run, found: NanOnset) -> Findings:
    """Find a NaN that nothing announced."""
    kind = kind_of(run)
    if kind.name != "data_or_numerics" or kind.quiet is None:
        return
    quiet = kind.quiet
    where = "backward" if found.metric == "grad_norm" else "forward"
    yield flat_gradnorm.finding(
        f"the run stopped being finite at {at_step(found.step)} although the gradient norm was steady",
        f"{number(quiet.row['value'])} at {at_step(quiet.step)} is {quiet.z:+.1f} robust deviations from"
        f" its past; the number was made in the {where} pass",
        proof(*found.evidence(), quiet.row),
        found.onset,
        confidence=kind.confidence,
        numbers={"z": quiet.z, "ratio": quiet.ratio, "pass": where},
    )


@rule("NAN004 nan-from-start", _NEEDS, about=lost, severity="error", cause="from_start")
def from_start(run: Run, found: NanOnset) -> Findings:
    """Find a NaN that was there from the beginning."""
    kind = kind_of(run)
    if kind.name != "from_start":
        return
    yield from_start.finding(
        f"training was never finite: the first bad value is at {at_step(found.step)}",
        f"{found.n_before or 'no'} finite {'loss' if found.n_before == 1 else 'losses'} before it",
        found.evidence(),
        found.onset,
        confidence=kind.confidence,
        numbers={"finite_losses_before": found.n_before},
    )


class Limit(Struct, frozen=True):
    """The norm that is too large, and the records before the onset that are looked at."""

    norm: float = range_of("grad_norm_unstable").hi
    records: int = 50


@remark("NAN013 large-gradnorm", "metrics events", about=lost, confidence="medium", cause="large_gradnorm")
def large_gradnorm(_run: Run, found: NanOnset, cfg: Limit) -> Findings:
    """Find the greatest gradient norm before the run went non-finite."""
    row = found.first.row
    past = found.rows.filter(
        (pl.col("role") == "grad_norm")
        & (pl.col("source") == row["source"])
        & pl.col("value").is_finite()
        & (pl.col("at") < found.step if found.step is not None else pl.lit(value=True))
    )
    past = past.highest("attempt")[-cfg.records :].frame()
    top = past.sort("value", "seq").tail(1)
    if not top.height or top["value"].item() <= cfg.norm:
        return
    worst = top.row(0, named=True)
    yield large_gradnorm.finding(
        f"the gradient norm was {number(worst['value'])} at {at_step(worst['at'])}, before the first bad value",
        f"above {number(cfg.norm)}, where training is called unstable",
        proof(worst, *found.evidence()[:1]),
        numbers={"grad_norm": worst["value"], "records": past.height},
    )


class Fall(Struct, frozen=True):
    """How far log-probabilities fall: five times is what the reference on this failure calls large.

    `floor` is below the logarithm of the smallest number of fp32 (1.2e-38, -87) by rounding: nothing is left of it.
    """

    records: int = 10
    near: int = 5
    ratio: float = 5.0
    floor: float = -80.0


@rule("NAN016 nan-after-logprobs-fell", "metrics events", about=lost, severity="error", cause="log_softmax_overflow")
def logprobs_fell(run: Run, found: NanOnset, cfg: Fall) -> Findings:
    """Find the log-probability that fell most."""
    fallen = max(_fallen_of(run, found, cfg), key=lambda one: one[0], default=None)
    if fallen is None:
        return
    ratio, row, before = fallen
    yield logprobs_fell.finding(
        f"{row['raw_name']} fell to {number(row['value'])} at {at_step(row['at'])}, then values were not finite"
        f" from {at_step(found.step)} on",
        f"{ratio:.3g} times its {number(before)} of before: exp() of it overflows",
        proof(row, *found.evidence()),
        found.onset,
        confidence="medium",
        numbers={"ratio": ratio},
    )


def _fallen_of(run: Run, found: NanOnset, cfg: Fall) -> Iterator[tuple[float, Row, float]]:
    """Each one that fell: how many times, the record where it began to be there, and its level before."""
    row = found.first.row
    own = holding(run, "log_probability", "raw_name") & (pl.col("source") == row["source"])
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
