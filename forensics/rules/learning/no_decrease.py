"""LRN005 loss-not-decreasing: the training loss is where it began.

What it detects: a loss whose last fifth is not below its first twentieth by more than noise, and that was never
lower in between.

Why it matters: all of the run was spent without learning anything.

How it decides: on logarithms, the first level less the last one is below three standard errors under autocorrelated
noise and below `least_fall`, and no moving level was lower by more than `ever`. It is a warning when the record
begins with the run, spans `steps` or `epochs` or more, is quiet enough (`noise`) that a fall would show, and the
model was fresh: the first level is at least `fresh` nats, which no trained language model pays, or the first or the
last level is that of chance over a usual or a stated number of classes (`near`). A fine-tuning counts as fresh whose
first level is above what chat data give. A score beside it that never rose over `scores` records, such as an accuracy
or an IoU, makes up for a span that is too short. Else it is a note, as a loss that starts near its floor (a converged
model, a short fine-tuning) is flat by nature: so is another one of a run whose settings name a trained model or made-
up data, and one that compares pairs of a batch. An evaluation loss that improved silences the rule. Zero learning
rates and gradients have rules of their own, which decide.

A gradient norm below `tiny` throughout makes weights that were too small its cause, and is a warning above `by_heart`,
the loss of a few examples that are learned by heart: a model that has converged has a loss below it. A fresh loss that
does not fall and rises by less than `swings` deviations, whose noise is `bounces` or more of its level, over `records`
or more, bounces: the learning rate is too high. One that falls by less than counts, but by more than `sigmas` errors,
and still does in its last quarter, crawls: the rate is too low.

What else looks like this: a resumed or fine-tuned model that has nothing left to learn; losses that need not fall
(adversarial, contrastive with a growing queue, reinforcement learning).

What to do next: overfit a single batch: its loss should drop to nearly zero, and if not, data, loss or model are wired
wrongly. Then check what is trainable and what the optimizer was given. Fix the loop before the architecture.

References: Karpathy 2019, "A Recipe for Training Neural Networks".

Example:
    ```metrics
    step: 10..200/10
    loss: 4.293 4.305 4.323 4.277 4.295 4.272 4.25 4.392 4.285 4.297 4.192 4.237 4.289 4.318 4.342 4.27 4.257 4.318
        4.317 4.265
    ```
    => LRN005 warning confidence=medium step=10 cause=not_learning causal=symptom first=4.295 last=4.291
Not this: a slow but steady fall
    ```metrics
    step: 10..200/10
    loss: 4.293 4.234 4.182 4.068 4.018 3.93 3.845 3.908 3.75 3.698 3.548 3.527 3.511 3.477 3.438 3.325 3.26 3.253
        3.198 3.107
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.lr_config import configured, number_of
from forensics.analyses.learning.objective import improved, paired, reinforced, tuned
from forensics.analyses.learning.regime import ADAPTER, FULL, regime_of
from forensics.analyses.learning.scores import has_idle_score
from forensics.analyses.learning.trend import Trend, from_the_start
from forensics.case.curves.loss import Curve, beside
from forensics.case.endings import ending
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Finding, Findings, Run, number, onset_at, proof, rule

#: Classes of widely used data sets: 10 (MNIST, CIFAR-10), 100 (CIFAR-100), 1000 (ImageNet).
_CLASSES = (10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Flat:
    """Thresholds of LRN005; falls are relative.

    `least_fall` and three standard errors bound what counts as a fall; `ever` is the fall of any moving level. Noise
    that would hide a fall of `shown` (`shown_short` in fewer than `records` records) decides nothing. Labels that are
    shuffled still let a model learn how frequent they are, which is worth a few percent (`least_fall`) of the loss.
    A run spans `steps`, or `epochs` where that is what it counts: a model learns something of data seen ten times.
    `by_heart` is the loss that two examples reach within 200 steps where loop, loss and model are right.
    """

    records: int = 100
    steps: int = 90
    epochs: int = 10
    sigmas: float = 3.0
    least_fall: float = 0.05
    ever: float = 0.08
    fresh: float = 3.0
    near: float = 0.02
    noise: float = 0.1
    scores: int = 10
    shown: float = 0.1
    shown_short: float = 0.05
    bounces: float = 0.08
    swings: float = 2.0
    tiny: float = 1e-4
    by_heart: float = 0.1


#: What the rules about zero learning rates, zero gradients and chance call flat.
FLAT = Flat()


@rule("learning", needs=("metrics", "facts"), config=Flat, causal="symptom")
def no_decrease(run: Run, cfg: Flat) -> Findings:
    """Find the longest training loss that never fell."""
    if reinforced(run):
        return
    known = [(one.curve, one.trend) for one in losses(run) if not one.curve.ends_nonfinite and one.trend is not None]
    if known and not tuned(run) and all(_bounces(curve, trend, cfg) for curve, trend in known):
        yield _bouncing(*max(known, key=lambda pair: len(pair[0])))
        return
    if not known or not all(is_flat(t, cfg) and _would_show(t, cfg) for _, t in known):
        return
    curve, trend = max(known, key=lambda pair: len(pair[0]))
    if not improved(run, curve, 1):
        known_little = _is_fresh(run, trend, cfg) or (trend.last > cfg.by_heart and _is_tiny(run, curve, cfg))
        yield _finding(run, curve, trend, cfg, sure=_long(run, curve, trend, cfg) and known_little)


def _bounces(curve: Curve, trend: Trend, cfg: Flat) -> bool:
    """Whether a loss has no trend, and swings by a good part of the level of a model that knows little."""
    flat = -cfg.swings * trend.noise.sd < trend.fall < cfg.sigmas * trend.fall_error and trend.noise.sd >= cfg.bounces
    return flat and trend.records >= cfg.records and trend.last >= cfg.fresh and from_the_start(curve)


def _long(run: Run, curve: Curve, trend: Trend, cfg: Flat) -> bool:
    first, last = curve.step(0), curve.step(-1)
    span = trend.records if first is None or last is None else last - first + 1
    reach = ending(run).reach
    passes = reach.done if reach.unit == "epoch" and reach.done is not None else 0
    shown = max(span / cfg.steps, passes / cfg.epochs) >= 1 or has_idle_score(run, cfg.scores)
    return shown and from_the_start(curve) and trend.noise.sd_long < cfg.noise


def _is_fresh(run: Run, trend: Trend, cfg: Flat) -> bool:
    """Whether the first level is one of a model that has learned nothing yet."""
    mock = configured(run, "mock_data")
    if paired(run) or (mock is not None and mock.text.lower() not in {"false", "0", "no"}):
        return False
    if tuned(run):
        return regime_of(run) in {ADAPTER, FULL, ""} and trend.first > range_of("finetune_loss").hi
    stated = number_of(run, "vocabulary") or number_of(run, "classes")
    if trend.first >= cfg.fresh:
        return True
    chance = [log(k) for k in (*_CLASSES, *((stated,) if stated else ())) if k > 1]
    return any(abs(level / of - 1) <= cfg.near for level in (trend.first, trend.last) for of in chance)


def is_flat(trend: Trend, cfg: Flat) -> bool:
    """Whether a loss neither fell to its end, nor in between, nor rose."""
    bound = max(cfg.sigmas * trend.fall_error, -log(1 - cfg.least_fall))
    return abs(trend.fall) < bound and trend.fell < max(bound, -log(1 - cfg.ever))


def _would_show(trend: Trend, cfg: Flat) -> bool:
    """Whether noise is low enough that a fall could be seen."""
    return cfg.sigmas * trend.fall_error < (cfg.shown if trend.records >= cfg.records else cfg.shown_short)


def _bouncing(curve: Curve, trend: Trend) -> Finding:
    return no_decrease.finding(
        f"{curve.raw_name} bounces around {number(trend.last)} and does not fall",
        f"its noise is {trend.noise.sd:.0%} of its level over {trend.records} records, without a trend",
        proof(curve.row(0), curve.row(-1)),
        onset_at(curve.row(0)),
        severity="warning",
        confidence="medium",
        cause="loss_bounces",
        numbers={"first": trend.first, "last": trend.last, "noise": trend.noise.sd},
    )


def _is_tiny(run: Run, curve: Curve, cfg: Flat) -> bool:
    """Whether the gradient norm beside a loss is next to nothing, and not exactly nothing, from the start."""
    norm = beside(run, curve, "grad_norm")
    return norm is not None and bool(np.median(norm.values) > 0 and np.percentile(norm.values, 90) < cfg.tiny)


def _crawls(trend: Trend, cfg: Flat) -> bool:
    """Whether a loss goes down all the time, by next to nothing."""
    return trend.fall > cfg.sigmas * trend.fall_error and trend.late_fall > cfg.sigmas * trend.late_error


def _finding(run: Run, curve: Curve, trend: Trend, cfg: Flat, *, sure: bool) -> Finding:
    crawls = _crawls(trend, cfg)
    what = "hardly fell" if crawls else "did not fall"
    return no_decrease.finding(
        f"{curve.raw_name} {what}: {number(trend.first)} at first, {number(trend.last)} at last",
        f"a fall of more than {max(cfg.least_fall, cfg.sigmas * trend.fall_error):.1%} would have shown"
        f" over {trend.records} records",
        proof(curve.row(0), curve.row(-1)),
        onset_at(curve.row(0)),
        severity="warning" if sure else "info",
        confidence="medium" if sure else "low",
        cause="weights_too_small" if _is_tiny(run, curve, cfg) else "loss_crawls" if crawls else "not_learning",
        numbers={"first": trend.first, "last": trend.last, "records": trend.records},
    )
