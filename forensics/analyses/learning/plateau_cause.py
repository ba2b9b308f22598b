"""Why the loss of a fine-tuning stays on a plateau, as far as its settings say: the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.lr_schedule import Schedule
from forensics.analyses.learning.objective import ADAPTER, FULL, regime_of
from forensics.case.evidence import fact_evidence, metric_evidence, number
from forensics.case.progress import ledger
from forensics.knowledge.ranges import range_of
from forensics.model import Evidence
from forensics.store.run import Run


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
