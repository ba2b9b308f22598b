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
    ```metrics
    step: 10..600/10
    loss: 2.381 2.362 2.348 2.314 2.303 2.279 2.258 2.289 2.242 2.234 2.19 2.193 2.199 2.198 2.196 2.165 2.153 2.163
        2.155 2.132 2.139 2.119 2.114 2.114 2.099 2.08 2.087 2.077 2.091 2.09 2.084 2.06 2.077 2.068 2.056 2.033 2.064
        2.039 2.026 2.024 2.315 2.322 2.316 2.329 2.304 2.301 2.27 2.298 2.265 2.267 2.251 2.254 2.255 2.259 2.266
        2.254 2.267 2.234 2.254 2.226
    ```
    => LRN004 warning confidence=medium step=410 step_lo=400 cause=level_shift size=1.152 net=1.101
Not this: a spike that decays
    ```metrics
    step: 10..600/10
    loss: 4.991 4.765 4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.095 3.028 2.963 2.839 2.763 2.739
        2.68 2.595 2.575 2.502 2.466 2.439 2.388 2.331 2.326 2.291 2.301 2.286 2.264 2.21 2.232 2.207 2.178 2.133
        2.182 2.134 2.107 5.464 3.8 2.755 2.109 2.129 2.091 2.086 2.04 2.083 2.034 2.039 2.017 2.024 2.027 2.035 2.047
        2.032 2.054 2.008 2.041 2.002
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.learning.course import Departure
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import Loss, kind, losses, staged
from forensics.analyses.learning.objective import improved, reinforced
from forensics.rules.kit import Finding, Findings, Run, at_step, onset_at, proof, rule


@rule("learning", needs=("metrics",), config=Limits, confidence="medium", cause="level_shift")
def loss_level_shift(run: Run, cfg: Limits) -> Findings:
    """Find the largest lasting step upwards."""
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
    return None if improved(run, loss.curve, gone.onset, gone.risen) else gone


def _finding(loss: Loss, gone: Departure, *, lasts: bool) -> Finding:
    curve = loss.curve
    first = curve.row(gone.onset)
    return loss_level_shift.finding(
        f"{curve.raw_name} stepped up by {gone.size - 1:.0%} at {at_step(first['at'])}",
        f"the level of the last records is {gone.net:.2f} times the one just before the step",
        proof(first, curve.row(-1)),
        onset_at(first, curve.step(max(0, gone.onset - 1))),
        severity="warning" if lasts else "info",
        numbers={"size": gone.size, "net": gone.net},
    )
