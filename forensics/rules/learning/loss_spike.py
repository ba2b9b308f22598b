"""LRN003 loss-spike-recovered: the training loss shot up, and came back by itself.

What it detects: one or more spikes of the training loss after which the old level returned.

Why it matters: the run survived, so this is a note and no fault. Large or frequent spikes announce a divergence, and an
evaluation or a checkpoint taken inside one is worth little.

How it decides: on logarithms, the loss stands above the median of the records before it by `z` noise deviations, by
`ratio`, and by `over_dips` times the deepest excursion downwards, which calibrates heavy tails; one record alone
needs more. It is over when the median of the next ten records is back.

What else looks like this: one batch of unusual data; the restart of a cyclic learning rate; the last, smaller batch of
an epoch.

What to do next: look at the gradient norm and the data of the first step of the spike; clip gradients; if spikes come
back, lower the learning rate or skip the batches, from a checkpoint before the spike.

References: Chowdhery et al. 2022, PaLM, section 5.1: skipping the batches around a spike removed it.

Example:
    ```metrics step,name,value
    10,loss,4.991
    20,loss,4.765
    30,loss,4.564
    40,loss,4.313
    50,loss,4.145
    60,loss,3.952
    70,loss,3.775
    80,loss,3.752
    90,loss,3.528
    100,loss,3.414
    110,loss,3.221
    120,loss,3.153
    130,loss,3.095
    140,loss,3.028
    150,loss,2.963
    160,loss,2.839
    170,loss,2.763
    180,loss,2.739
    190,loss,2.68
    200,loss,2.595
    210,loss,2.575
    220,loss,2.502
    230,loss,2.466
    240,loss,2.439
    250,loss,2.388
    260,loss,2.331
    270,loss,2.326
    280,loss,2.291
    290,loss,2.301
    300,loss,2.286
    310,loss,2.264
    320,loss,2.21
    330,loss,2.232
    340,loss,2.207
    350,loss,2.178
    360,loss,2.133
    370,loss,2.182
    380,loss,2.134
    390,loss,2.107
    400,loss,5.464
    410,loss,3.8
    420,loss,2.755
    430,loss,2.109
    440,loss,2.129
    450,loss,2.091
    460,loss,2.086
    470,loss,2.04
    480,loss,2.083
    490,loss,2.034
    500,loss,2.039
    510,loss,2.017
    520,loss,2.024
    530,loss,2.027
    540,loss,2.035
    550,loss,2.047
    560,loss,2.032
    570,loss,2.054
    580,loss,2.008
    590,loss,2.041
    600,loss,2.002
    ```
    => LRN003 info confidence=high step=400 step_lo=390 cause=loss_spike causal=context spikes=1 peak=2.38498
Not this: a single outlier of a loss that has as deep ones downwards
    ```metrics step,name,value
    10,loss,4.991
    20,loss,4.765
    30,loss,4.564
    40,loss,4.313
    50,loss,4.145
    60,loss,3.952
    70,loss,3.775
    80,loss,3.752
    90,loss,3.528
    100,loss,3.414
    110,loss,3.221
    120,loss,3.153
    130,loss,3.095
    140,loss,3.028
    150,loss,2.963
    160,loss,2.839
    170,loss,2.763
    180,loss,2.739
    190,loss,2.68
    200,loss,2.595
    210,loss,3.477
    220,loss,2.502
    230,loss,2.466
    240,loss,2.439
    250,loss,2.388
    260,loss,2.331
    270,loss,2.326
    280,loss,2.291
    290,loss,2.301
    300,loss,2.286
    310,loss,1.585
    320,loss,2.21
    330,loss,2.232
    340,loss,2.207
    350,loss,2.178
    360,loss,2.133
    370,loss,2.182
    380,loss,2.134
    390,loss,2.107
    400,loss,2.102
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.objective import reinforced
from forensics.case.evidence import at_step, metric_evidence, number
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run

#: A spike of twice the level is a large one.
_MAJOR = 2.0


@rule("LRN003", shape=Shape.LEARNING, needs=("metrics",), config=Limits)
def loss_spike(run: Run, cfg: Limits | None = None) -> Iterator[Finding]:
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
    yield Finding(
        rule="LRN003",
        shape=Shape.LEARNING,
        severity=Severity.INFO,
        confidence=Confidence.HIGH if worst.peak >= _MAJOR else Confidence.MEDIUM,
        title=f"{many} {worst.peak:.2f} times its level, at {at_step(first['at'])}, recovered",
        because=f"the level before it was back at {at_step(curve.step(back))}, {back - worst.index} records later",
        evidence=(metric_evidence(first), metric_evidence(curve.row(back), EvidenceRole.RELATED)),
        onset=Onset(step=first["at"], t_ns=first["t_ns"], rank=curve.rank, step_lo=curve.step(worst.index - 1)),
        cause="loss_spike",
        causal=Causal.CONTEXT,
        numbers={"spikes": len(spikes), "peak": number(worst.peak), "records": back - worst.index},
        likely=("unusual data in these steps", "a learning rate near the edge of stability", "no gradient clipping"),
        next=("look at the gradient norm and the batch of that step", "clip gradients at 1.0"),
    )
