"""What is unusual for a supervised fine-tuning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.lr_schedule import schedule_of
from forensics.analyses.learning.objective import ADAPTER, FULL, regime_of
from forensics.case.curves.loss import Curve, curves
from forensics.knowledge.ranges import Range, range_of
from forensics.rules.kit import (
    Evidence,
    Finding,
    Findings,
    Onset,
    Row,
    Run,
    fact_evidence,
    number,
    onset_at,
    proof,
    rule,
    times,
)
from forensics.stats.spread import median_of

_KINDS = {ADAPTER: "an adapter", FULL: "all weights"}


class Usual(Struct, frozen=True):
    """Records that tell a level, and how many gradient norms above the red flag are no single outlier."""

    records: int = 20
    often: int = 3


@rule("LRN017 finetune-out-of-range", "metrics facts")
def finetune_out_of_range(run: Run, cfg: Usual) -> Findings:
    """Compare settings, loss and gradient norm with the ranges of the regime."""
    regime = regime_of(run)
    if regime not in _KINDS:
        return
    said = [*_rate(run, cfg, regime), *_decay(run, regime)]
    if said:
        yield finetune_out_of_range.finding(
            "; ".join(words for words, _ in said),
            f"the run trains {_KINDS[regime]}",
            proof(*(evidence for _, evidence in said)),
            Onset(),
            severity="info",
            confidence="low",
            cause="finetune_settings",
            causal="context",
        )
    yield from _level(run, cfg)
    yield from _norms(run, cfg)


def _rate(run: Run, cfg: Usual, regime: str) -> Iterator[tuple[str, Evidence | Row]]:
    usual = range_of(f"{regime}_lr")
    logged = [schedule_of(c) for c in curves(run, "lr") if len(c) >= cfg.records]
    if logged:
        best = max(logged, key=lambda s: s.peak)
        rate, evidence = best.peak, best.curve.row(best.top)
    else:
        said = configured(run, "lr")
        if said is None or said.number is None:
            return
        rate, evidence = said.number, fact_evidence(said.row)
    if 0 < rate < usual.lo:
        yield f"a peak learning rate of {number(rate)} is low", evidence
    if rate > usual.hi:
        yield f"a peak learning rate of {number(rate)} is high", evidence


def _decay(run: Run, regime: str) -> Iterator[tuple[str, Evidence]]:
    said = configured(run, "weight_decay")
    high = range_of("adapter_weight_decay").hi
    if regime == ADAPTER and said is not None and said.number is not None and said.number > high:
        yield f"a weight decay of {said.text} can suppress an adapter", fact_evidence(said.row)


def _level(run: Run, cfg: Usual) -> Findings:
    usual = range_of("finetune_loss")
    long = max(curves(run, "loss"), key=len, default=None)
    if long is None or len(long) < cfg.records or float(long.values.min()) <= 0 or long.ends_nonfinite:
        return
    level = median_of(long.values[-max(5, len(long) // 10) :])
    easy = any(len(c) and float(c.values[-1]) < 2 * usual.lo for c in curves(run, "eval_loss"))
    if usual.lo <= level <= usual.hi or (level < usual.lo and easy):
        return
    high = level > usual.hi
    meaning = "is high for a pretrained model" if high else "means that the data are learned by heart"
    yield finetune_out_of_range.finding(
        f"a last {long.raw_name} of {number(level)} {meaning}",
        f"chat data give {usual.lo:g} to {usual.hi:g} ({usual.source})",
        proof(long.row(-1), long.row(0)),
        severity="warning",
        confidence="medium",
        cause="finetune_loss_high" if high else "finetune_loss_low",
        numbers={"level": level},
    )


def _norms(run: Run, cfg: Usual) -> Findings:
    usual = range_of("finetune_grad_norm")
    for norm in curves(run, "grad_norm"):
        if len(norm) < cfg.records:
            continue
        values, start = norm.values, len(norm) // 20
        half = median_of(values[-(len(norm) // 2) :])
        spikes = np.flatnonzero(values[start:] > (usual.red or np.inf)) + start
        if len(spikes):
            yield _spiking(norm, spikes, usual, cfg)
        elif half > usual.hi or half < usual.lo:
            yield _off(norm, half, usual)
        else:
            continue
        return


def _spiking(norm: Curve, spikes: np.ndarray, usual: Range, cfg: Usual) -> Finding:
    first, many = norm.row(int(spikes[0])), len(spikes) >= cfg.often
    return finetune_out_of_range.finding(
        f"{norm.raw_name} is above {usual.red:g} {times(len(spikes))},"
        f" {number(first['value'])} first at {norm.where(int(spikes[0]))}:"
        f" {usual.meaning}",
        f"healthy is {usual.healthy} ({usual.source})",
        proof(first, *(norm.row(int(i)) for i in spikes[1:3])),
        onset_at(first, norm.step(int(spikes[0]) - 1)),
        severity="warning" if many else "info",
        confidence="medium" if many else "low",
        cause="finetune_grad_norm",
        numbers={"spikes": len(spikes), "highest": float(norm.values[spikes].max())},
    )


def _off(norm: Curve, level: float, usual: Range) -> Finding:
    high = level > usual.hi
    return finetune_out_of_range.finding(
        f"{norm.raw_name} stays at {number(level)}" + (", above" if high else ", below") + " its healthy range",
        f"the median of the last half; healthy is {usual.healthy} ({usual.source})",
        proof(norm.row(-1), norm.row(0)),
        onset_at(norm.row(len(norm) - len(norm) // 2)),
        severity="warning" if high else "info",
        confidence="low",
        cause="finetune_grad_norm" if high else "finetune_settings",
        numbers={"level": level},
    )
