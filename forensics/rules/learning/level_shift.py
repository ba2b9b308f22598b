"""LRN004 loss-level-shift: the training loss stepped up to a higher level, and went on from there.

What it detects: a step of the level that neither recovers as a spike does nor grows as a divergence does.

Why it matters: something changed at that step: the data, the masking, the batch, a part of the model. The steps before
and after are not comparable.

How it decides: on logarithms, the medians on both sides of a step differ, less the slopes on both sides, by `jump_z`
standard errors under autocorrelated noise. It is a warning when the last level is still above the one before the step,
else a note; and a note where the gradient norm stayed and the loss learned on from the new level, as what is asked of
the model changed. An evaluation loss that is no worse after it silences the rule.

What else looks like this: a new data mix or sequence length by design; a loss that is logged with another reduction
after a resume; the second half of a schedule that raises the learning rate.

What to do next: compare what the data loader and the configuration did at the onset; evaluate checkpoints from
before and after it.

References: Page 1954, "Continuous Inspection Schemes", on cumulative sums, which place the onset.

Example:
    ```metrics step,name,value
    10,loss,2.381
    20,loss,2.362
    30,loss,2.348
    40,loss,2.314
    50,loss,2.303
    60,loss,2.279
    70,loss,2.258
    80,loss,2.289
    90,loss,2.242
    100,loss,2.234
    110,loss,2.19
    120,loss,2.193
    130,loss,2.199
    140,loss,2.198
    150,loss,2.196
    160,loss,2.165
    170,loss,2.153
    180,loss,2.163
    190,loss,2.155
    200,loss,2.132
    210,loss,2.139
    220,loss,2.119
    230,loss,2.114
    240,loss,2.114
    250,loss,2.099
    260,loss,2.08
    270,loss,2.087
    280,loss,2.077
    290,loss,2.091
    300,loss,2.09
    310,loss,2.084
    320,loss,2.06
    330,loss,2.077
    340,loss,2.068
    350,loss,2.056
    360,loss,2.033
    370,loss,2.064
    380,loss,2.039
    390,loss,2.026
    400,loss,2.024
    410,loss,2.315
    420,loss,2.322
    430,loss,2.316
    440,loss,2.329
    450,loss,2.304
    460,loss,2.301
    470,loss,2.27
    480,loss,2.298
    490,loss,2.265
    500,loss,2.267
    510,loss,2.251
    520,loss,2.254
    530,loss,2.255
    540,loss,2.259
    550,loss,2.266
    560,loss,2.254
    570,loss,2.267
    580,loss,2.234
    590,loss,2.254
    600,loss,2.226
    ```
    => LRN004 warning confidence=medium step=410 step_lo=400 cause=level_shift size=1.152 net=1.101
Not this: a spike that decays
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
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.learning.course import Departure
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import Loss, kind, losses, staged
from forensics.analyses.learning.objective import improved, reinforced
from forensics.case.evidence import at_step, metric_evidence
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run


@rule("LRN004", shape=Shape.LEARNING, needs=("metrics",), config=Limits)
def loss_level_shift(run: Run, cfg: Limits | None = None) -> Iterator[Finding]:
    """Find the largest lasting step upwards."""
    cfg = cfg or Limits()
    if reinforced(run):
        return
    found = [(one, gone) for one in losses(run, cfg) if (gone := _shift(run, one, cfg)) is not None]
    if found:
        loss, gone = max(found, key=lambda pair: pair[1].size)
        yield _finding(
            loss, gone, lasts=gone.net > cfg.jump and gone.how == "jump" and gone.stays and not staged(run, loss)
        )


def _shift(run: Run, loss: Loss, cfg: Limits) -> Departure | None:
    gone = loss.gone
    if gone is None or (kind(loss, cfg) != "level_shift" and not staged(run, loss)) or gone.how == "climb":
        return None
    return None if improved(run, loss.curve, gone.onset) else gone


def _finding(loss: Loss, gone: Departure, *, lasts: bool) -> Finding:
    curve = loss.curve
    first = curve.row(gone.onset)
    return Finding(
        rule="LRN004",
        shape=Shape.LEARNING,
        severity=Severity.WARNING if lasts else Severity.INFO,
        confidence=Confidence.MEDIUM,
        title=f"{curve.raw_name} stepped up by {gone.size - 1:.0%} at {at_step(first['at'])}",
        because=f"the level of the last records is {gone.net:.2f} times the one just before the step",
        evidence=(metric_evidence(first), metric_evidence(curve.row(-1), EvidenceRole.RELATED)),
        onset=Onset(step=first["at"], t_ns=first["t_ns"], rank=curve.rank, step_lo=curve.step(max(0, gone.onset - 1))),
        cause="level_shift",
        causal=Causal.ROOT,
        numbers={"size": gone.size, "net": gone.net},
        likely=("other data from that step on", "a changed loss mask or reduction", "a raised learning rate"),
        next=("compare data, masking and learning rate just before and after that step",),
    )
