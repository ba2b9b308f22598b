"""LRN003 loss-spike-recovered: the training loss shot up, and came back by itself.

What it detects: one or more spikes of the training loss after which the old level returned.

Why it matters: the run survived, so one spike is a note and no fault. Large and frequent spikes announce a divergence,
and an evaluation or a checkpoint taken inside one is worth little.

How it decides: on logarithms, the loss stands above the median of the records before it by `z` noise deviations, by
`ratio`, and by `over_dips` times the deepest excursion downwards, which calibrates heavy tails; one record alone needs
more. It is over when the median of the next ten records is back. Three spikes of twice the level or more are a warning
where they share a cause: most of them at one place of their epochs are a bad sample; 70 % of them near the peak of a
rate that is elsewhere most of the time are a rate that is too high. Three of 2.5 times the level always are, and so is
one that holds the loss up for a fifth of all records.

What else looks like this: one batch of unusual data; the restart of a cyclic learning rate; the last, smaller batch of
an epoch.

What to do next: look at the gradient norm and the data of the first step of the spike; clip gradients; if spikes come
back, lower the learning rate or skip the batches, from a checkpoint before the spike.

References: Chowdhery et al. 2022, PaLM, section 5.1: skipping the batches around a spike removed it.

Example:
    ```metrics
    step: 10..600/10
    loss: 4.991 4.765 4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.095 3.028 2.963 2.839 2.763 2.739
        2.68 2.595 2.575 2.502 2.466 2.439 2.388 2.331 2.326 2.291 2.301 2.286 2.264 2.21 2.232 2.207 2.178 2.133
        2.182 2.134 2.107 5.464 3.8 2.755 2.109 2.129 2.091 2.086 2.04 2.083 2.034 2.039 2.017 2.024 2.027 2.035 2.047
        2.032 2.054 2.008 2.041 2.002
    ```
    => LRN003 info confidence=high step=400 step_lo=390 cause=loss_spike causal=context spikes=1 peak=2.38498
Example: one that cost a third of the run
    ```metrics
    step: 10..300/10
    loss: 2.139 2.136 2.133 2.09 2.11 2.08 2.095 2.07 2.084 2.06 25.1 14 9.7 6.1 5.2 4.5 3.9 3.1 2.7 2.4 2.07 2.06 2.065
        2.05 2.06 2.04 2.05 2.045 2.03 2.04
    ```
    => LRN003 warning confidence=medium step=110 step_lo=100 cause=loss_spike spikes=1
Not this: a single outlier of a loss that has as deep ones downwards
    ```metrics
    step: 10..400/10
    loss: 4.991 4.765 4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.095 3.028 2.963 2.839 2.763 2.739
        2.68 2.595 3.477 2.502 2.466 2.439 2.388 2.331 2.326 2.291 2.301 2.286 1.585 2.21 2.232 2.207 2.178 2.133
        2.182 2.134 2.107 2.102
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.objective import reinforced
from forensics.analyses.learning.spike_cause import Common, common_cause
from forensics.rules.kit import Findings, Run, at_step, number, onset_at, proof, rule

#: A spike of twice the level is a large one.
_MAJOR = 2.0
#: So many large ones are no accident of a single batch where they share a cause, and severe ones in any case.
_FREQUENT, _SEVERE = 3, 2.5
#: A severe one that holds the loss up for this share of all records has cost as much of the run.
_COSTLY = 0.2


@rule("learning", needs=("metrics", "facts"), config=Limits)
def loss_spike(run: Run, cfg: Limits) -> Findings:
    """Note the spikes of the curve that has most of them."""
    if reinforced(run):
        return
    known = [(one.curve, one.course) for one in losses(run, cfg) if one.course is not None]
    found = max(known, key=lambda pair: len(pair[1].spikes), default=None)
    if found is None or not found[1].spikes:
        return
    curve, spikes = found[0], found[1].spikes
    worst = max(spikes, key=lambda s: s.peak)
    first = curve.row(worst.index)
    back = worst.recovered or worst.index
    many = (
        f"{len(spikes)} spikes of {curve.raw_name}, the highest" if len(spikes) > 1 else f"a spike of {curve.raw_name}"
    )
    major = [spike for spike in spikes if spike.peak >= _MAJOR]
    cause, shared = common_cause(run, curve, major, Common()) if len(major) >= _FREQUENT else ("", "")
    severe = [spike for spike in spikes if spike.peak >= _SEVERE]
    longest = max(((spike.recovered or spike.index) - spike.index for spike in severe), default=0)
    warns = bool(cause) or len(severe) >= _FREQUENT or longest >= _COSTLY * len(curve.values)
    later = f"{back - worst.index} records" if back - worst.index != 1 else "a record"
    yield loss_spike.finding(
        f"{many} {worst.peak:.2f} times its level, at {at_step(first['at'])}, recovered",
        f"the level before it was back at {at_step(curve.step(back))}, {later} later"
        + (f"; {shared}" if shared and warns else ""),
        proof(first, curve.row(back)),
        onset_at(first, curve.step(worst.index - 1)),
        severity="warning" if warns else "info",
        confidence="high" if worst.peak >= _MAJOR and not warns else "medium",
        cause=cause or "loss_spike",
        causal="root" if warns else "context",
        numbers={"spikes": len(spikes), "peak": number(worst.peak), "records": back - worst.index},
    )
