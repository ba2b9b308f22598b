"""LRN001 diverged: the training loss left its best level for good, and stayed finite.

What it detects: a loss that rises far above the level it had reached and never comes back, at once or gradually.

Why it matters: the run goes on, nothing crashes, and everything after the onset is lost.

How it decides: a loss a thousand times its first value that ends no lower than it began has exploded, after any
number of records, and so has one whose last two lie twice above all before them (three times where those are few).
From twenty records on the logarithm of the loss is judged against autocorrelated noise: a spike that does not
recover, a step of the level, or a last level above the lowest one by more than the lowest of many is low by chance.
It is an error where the rise is many times the noise of a record and lasts without turning, or ends above where the
loss began, or is absurdly large; else a warning, and a note below a fifth, which later epochs over the same data show
as well. A rise that gives back less than a fiftieth of what was learned is none. Two records or more at the end at
twice the level are a warning. The onset is the first record of the step or slope that explains the rise best. A
learning rate that jumped just before is the cause. An evaluation loss that is no worse once half of the rise is made
than before the onset contradicts, and silences the rule; so does a loss that stepped up and learned on while its
gradient norm stayed. Runs that log rewards, losses that end in NaN, and a single rank that left the others have rules
of their own.

What else looks like this: an auxiliary loss that grows by design while the evaluation improves; a new stage or a
resumed run with other data; a spike that recovers; a log of many short optimizations.

What to do next: resume from a checkpoint before the onset with a lower learning rate, or skip the data of that step.

References: Chowdhery et al. 2022, PaLM, section 5.1 (loss spikes); Zhang et al. 2022, OPT-175B logbook.

Example: three records are enough for a loss beyond all bounds
    ```metrics
    step: 1 2 3
    loss: 2.2 8e27 5e30
    ```
    => LRN001 error confidence=high step=2 step_lo=1 cause=diverged best=2.200
Not this:
    ```metrics
    step: 1..12
    loss: 6.5 5.5 4.75 4.5 9.5 4.25..3.5/-0.25 3.75 3.5 3.25
    ```
    => nothing
Not this: a loss that is learned by heart wanders near zero
    ```metrics
    step: 5..115/5
    loss: 0.633 0.387 0.213 0.107 0.069 0.0398 0.0338 0.017 0.0127 0.0114 0.0117 0.0107 0.0101 0.0085 0.0069 0.0077
        0.0063 0.0059 0.0062 0.0114 0.0081 0.0117 0.0092
    ```
    => nothing
"""

from __future__ import annotations

import numpy as np

from forensics.analyses.learning.course import Departure
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import Loss, kind, losses, staged
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.learning.ranks import parted
from forensics.analyses.learning.rate import jump_before
from forensics.rules.kit import (
    EvidenceRole,
    Finding,
    Findings,
    Run,
    Severity,
    metric_evidence,
    number,
    onset_at,
    proof,
    rule,
)
from forensics.stats.spread import median_of

#: No training starts from a loss of this size.
_ABSURD = 1e10
#: A rise within this share of the records, from this share of the first level or more, follows no learning.
_EARLY, _FELL = 0.25, 0.9
#: So far above its level a spike is a large one.
_MAJOR = 2.0


@rule("learning", needs=("metrics",), config=Limits)
def diverged(run: Run, cfg: Limits) -> Findings:
    """Find the source whose training loss left its best level for good: the worst first, then the earliest onset."""
    if reinforced(run):
        return
    apart = parted(run)
    alone = apart.together.curves[apart.odd] if apart is not None and apart.how == "own" else None
    found = [hit for one in losses(run, cfg) if one.curve is not alone and (hit := _judge(run, one, cfg)) is not None]
    if found:
        yield min(found, key=lambda f: (-f.severity.rank, f.onset.step if f.onset.step is not None else 1 << 62))


def _judge(run: Run, loss: Loss, cfg: Limits) -> Finding | None:
    gone, values = loss.gone, loss.curve.values
    if len(values) > 1 and not loss.curve.ends_nonfinite and median_of(values) > _ABSURD:
        return _absurd(loss)
    if gone is None:
        return None
    severity = _severity(gone, kind(loss, cfg), cfg)
    if severity is None or staged(run, loss) or improved(run, loss.curve, gone.onset, gone.risen):
        return None
    return _finding(run, loss, gone, severity)


def _severity(gone: Departure, what: str | None, cfg: Limits) -> Severity | None:
    """How bad a departure is; None where it is none, or cannot be told from what recovers."""
    if what == "unresolved":
        burst = gone.stays and gone.left > 1 and gone.size >= _MAJOR
        return Severity.WARNING if burst else None
    if what != "divergence":
        return None
    if gone.how == "explosion":
        far = gone.size >= cfg.exploded or gone.records >= cfg.records
        return Severity.ERROR if far else Severity.WARNING
    if (not gone.climbing and gone.how != "spike") or gone.lost < cfg.lost:
        return None
    if gone.rise <= cfg.rise:
        return Severity.INFO
    lasts = gone.slope >= 0 and gone.left >= cfg.wasted * gone.records
    return Severity.ERROR if gone.clear and (lasts or gone.above > 1) else Severity.WARNING


def _finding(run: Run, loss: Loss, gone: Departure, severity: Severity) -> Finding:
    curve, i = loss.curve, gone.onset
    step, last = curve.step(i), curve.step(i - 1) if i else None
    jump = jump_before(run, curve, i)
    raised = f"the learning rate had jumped from {number(jump[1])} to {number(jump[2])}" if jump is not None else ""
    first = jump[0] if jump is not None else curve.row(i)
    related = (metric_evidence(curve.row(-1), EvidenceRole.RELATED),)
    return diverged.finding(
        f"{curve.raw_name} {_words(gone)}: {gone.best:.4g} → {gone.final:.4g}"
        + (f" from step {step}" if step is not None else ""),
        raised
        or (
            "no later level comes back to it"
            if severity is Severity.ERROR
            else "the last level is above the lowest one by more than noise explains"
        ),
        proof(curve.row(i), first if jump else None, *related),
        onset_at(first, last if jump is None else None),
        severity=severity,
        confidence="high" if gone.how == "explosion" and severity is Severity.ERROR else "medium",
        cause="lr_jump" if jump is not None else "diverged_from_start" if _never_fell(gone) else "diverged",
        numbers={"best": gone.best, "final": gone.final, "rise": gone.rise},
    )


def _never_fell(gone: Departure) -> bool:
    """Whether nothing was learned before the rise: it began with the run, or left from about the first level."""
    return gone.how != "explosion" and gone.onset <= _EARLY * gone.records and gone.above >= gone.rise * _FELL


def _words(gone: Departure) -> str:
    if gone.how == "explosion":
        return "exploded"
    return "rose at the end" if gone.left < 4 else "rose and stayed"


def _absurd(loss: Loss) -> Finding:
    curve = loss.curve
    low = np.flatnonzero(curve.values <= _ABSURD)
    at = min(int(low[-1]) + 1 if len(low) else 0, len(curve) - 1)
    row = curve.row(at)
    return diverged.finding(
        f"{curve.raw_name} is absurdly large: {curve.values[0]:.4g} → {curve.values[-1]:.4g}",
        f"no training starts from a loss above {_ABSURD:.0e}",
        proof(row, curve.row(-1)),
        onset_at(row, curve.step(at - 1) if at else None),
        severity="error",
        confidence="high",
        cause="diverged",
        numbers={"best": float(curve.values.min()), "final": float(curve.values[-1])},
    )
