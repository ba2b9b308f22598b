"""Causes of the course of a loss: the common trait of its spikes, and the reason for a plateau."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from forensics.analyses.epoch_places import same_place
from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.lr_schedule import Schedule
from forensics.analyses.learning.objective import ADAPTER, FULL, regime_of
from forensics.analyses.learning.spikes import Spike
from forensics.case.curves.loss import Curve, beside
from forensics.case.evidence import fact_evidence, metric_evidence, number
from forensics.case.progress import ledger
from forensics.case.settings import settings
from forensics.knowledge.ranges import range_of
from forensics.model import Evidence
from forensics.store.run import Run

#: So many spikes have something in common where a share of them stands where the rate is above that part of its
#: highest, and a share of all records at most does: by chance that is one of 8 cases of three, and rarer for more.
_MANY, _SHARE, _AT_PEAK, _USUAL = 3, 0.7, 0.8, 0.5


def common_cause(run: Run, curve: Curve, spikes: Sequence[Spike]) -> tuple[str, str]:
    """Give the slug of what the spikes share, empty where they share nothing, and the words."""
    places = np.array([spike.index for spike in spikes])
    again = same_place(curve.epochs, places)
    if len(again) >= 2 and 2 * len(again) > len(places):
        return "bad_sample", f"{len(again)} of {len(places)} are at the same place of their epochs"
    if len(places) >= _MANY and _at_the_peak(run, curve, places):
        return "spikes_at_peak_rate", "they are where the learning rate is near its peak"
    return "", _batch(run)


def _at_the_peak(run: Run, curve: Curve, places: np.ndarray) -> bool:
    rate = beside(run, curve, "lr")
    if rate is None or len(rate) != len(curve):
        return False
    values = rate.values
    high = values > _AT_PEAK * values.max()
    return float(high[places].mean()) >= _SHARE and float(high.mean()) <= _USUAL


def _batch(run: Run) -> str:
    """The batch of one update on a device, where the settings say it."""
    known = settings(run)
    parts = [known[name].value for name in ("micro_batch", "accumulation") if name in known]
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return ""
    return f"the effective batch is {' x '.join(parts)} = {int(parts[0]) * int(parts[1])} samples of each device"


# Why the loss of a fine-tuning stays on a plateau, as far as its settings say: the likeliest first.


class Reason(Struct, frozen=True):
    """A setting outside its usual range: the slug of the cause, the words, and where it is seen."""

    cause: str
    words: str
    evidence: Evidence


def reason_of(run: Run, schedule: Schedule) -> Reason | None:
    """Give the first setting that alone can hold a loss up; None where none is unusual, or the regime is not known."""
    return next(_reasons(run, schedule, regime_of(run)), None)


def _reasons(run: Run, schedule: Schedule, regime: str) -> Iterator[Reason]:
    if regime not in {ADAPTER, FULL}:
        return
    mask = configured(run, "on_prompts")
    if mask is not None and mask.text.lower() == "true":
        words = "the prompts are trained on, too: all tokens count, and not only those of the answers"
        yield Reason("labels_unmasked", words, fact_evidence(mask.row))
    usual = range_of(f"{regime}_lr_usual")
    if 0 < schedule.peak < usual.lo:
        words = f"the peak learning rate {number(schedule.peak)} is below the usual {usual.lo:g} to {usual.hi:g}"
        yield Reason("lr_low", words, metric_evidence(schedule.curve.row(schedule.top)))
    decay = configured(run, "weight_decay")
    if decay is not None and decay.number is not None and decay.number > range_of("adapter_weight_decay").hi:
        yield Reason("weight_decay_high", f"the weight decay of {decay.text} is high", fact_evidence(decay.row))
    yield from _warmup(run)


def _warmup(run: Run) -> Iterator[Reason]:
    steps, share = configured(run, "warmup_steps"), configured(run, "warmup_ratio")
    bars = (counter.plan for counter in ledger(run).of("train", "step"))
    total, usual = ledger(run).planned("step") or max(bars, default=None), range_of("warmup_share")
    if share is not None and share.number is not None and steps is None:
        told, row = share.number, share.row
    elif steps is not None and steps.number is not None and (total or not steps.number):
        told, row = steps.number / total if total else 0.0, steps.row
    else:
        return
    if told < usual.lo:
        words = f"the warm-up takes {told:.1%} of the steps, and usual are {usual.lo:.0%} to {usual.hi:.0%}"
        yield Reason("warmup_short", words, fact_evidence(row))
