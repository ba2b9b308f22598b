"""LRN006 early-plateau: the training loss stopped falling early, with the learning rate still up.

What it detects: a loss that fell at first, then stayed at one level for most of the run although the learning rate had
not been lowered.

Why it matters: either all is learned, or something stops the learning; the steps since then were spent for nothing.

How it decides: the level has been within noise of its last value since before `early` of the records; the third and
the last quarter do not differ by more than 2.3 standard errors (99 %) and `least_fall`; and from there on the learning
rate was above half of its peak for `shown` of the records. What level is too high cannot be known from one run, so it
is a note. With the vocabulary size known, a language model whose level is above `high` of ln(vocabulary) learned no
more than how frequent its tokens are: a warning. So is a fine-tuning whose level is above what chat data give; a
setting that alone can hold it up (prompts that are trained on, a rate below the usual, a strong weight decay, a warm-up
that is hardly one) is its cause.

What else looks like this: a small task that is learned; a converged model.

What to do next: compare with a run of the same data that worked; check the label mask, the learning rate, the warm-up
and the weight decay.

References: Sen 1968 and Theil 1950 on slopes without assumptions; Shannon 1951 on the entropy of single words.

Example:
    ```metrics
    step: 10..280/10
    loss: 10.09 8.924 8.222 7.753 7.502 7.327 7.215 7.251 7.145 7.131 7.048 7.07 7.1 7.116 7.13 7.082 7.072 7.113 7.112
        7.077 7.11 7.079 7.084 7.098 7.079 7.049 7.079 7.069
    lr: 0.0003
    ```
    ```facts key,value,family
    vocab_size,50000,config
    ```
    => LRN006 warning confidence=medium step=80 cause=plateau causal=symptom level=7.079 late_fall=0.004370
Not this: a plateau at the end of a decayed learning rate
    ```metrics
    step: 10..280/10
    loss: 5.096 3.921 3.211 2.763 2.505 2.34 2.239 2.209 2.152 2.133 2.099 2.1 2.105 2.108 2.111 2.096 2.093 2.104*2
        2.093 2.103 2.094 2.095 2.099 2.094 2.085 2.094 2.091
    lr: 0.0003..0.0002679/-0.0000107 0.0002571..0.0001929/-0.0000107 0.0001821..0.0001179/-0.0000107 0.0001071 9.643e-05
        8.571e-05 7.5e-05 6.429e-05 5.357e-05 4.286e-05 3.214e-05 2.143e-05 1.071e-05
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.lr_schedule import Schedule, schedule_beside
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.learning.plateau_cause import reason_of
from forensics.analyses.learning.regime import ADAPTER, FULL, regime_of
from forensics.analyses.learning.trend import Trend, from_the_start
from forensics.case.curves.loss import Curve
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Finding, Findings, Run, at_step, fact_evidence, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Plateau:
    """Thresholds of LRN006: shares of records, of the peak learning rate and of ln(vocabulary); falls are relative."""

    records: int = 24
    early: float = 0.3
    least_fall: float = 0.01
    sigmas: float = 2.33
    lr_up: float = 0.5
    shown: float = 0.25
    high: float = 0.55
    uniform: float = 0.98


@rule("learning", needs=("metrics", "facts"), config=Plateau, cause="plateau", causal="symptom")
def early_plateau(run: Run, cfg: Plateau) -> Findings:
    """Find the first training loss that settled early."""
    if reinforced(run):
        return
    for one in losses(run):
        curve, trend = one.curve, one.trend
        if trend is None or curve.ends_nonfinite or not is_plateau(curve, trend, cfg):
            continue
        schedule = schedule_beside(run, curve)
        if schedule is None or not _is_up(schedule, trend, cfg) or improved(run, curve, len(curve) // 2):
            continue
        yield _finding(run, curve, trend, schedule, cfg)
        return


def _is_up(schedule: Schedule, trend: Trend, cfg: Plateau) -> bool:
    """Whether the rate was up for long enough behind the place where the loss settled."""
    v = schedule.curve.values
    late = v[min(len(v), int(trend.settled * len(v) / max(trend.records, 1))) :]
    return int((late >= cfg.lr_up * schedule.peak).sum()) >= max(cfg.shown * len(v), 1) and schedule.peak > 0


def is_plateau(curve: Curve, trend: Trend, cfg: Plateau) -> bool:
    """Whether a loss fell, and then stayed at one level from early on."""
    bound = max(cfg.sigmas * trend.late_error, -log(1 - cfg.least_fall))
    return (
        trend.records >= cfg.records
        and from_the_start(curve)
        and 0 < trend.settled < cfg.early * len(curve)
        and trend.fall > 3 * trend.fall_error
        and abs(trend.late_fall) < min(bound, 0.05)
    )


def _finding(run: Run, curve: Curve, trend: Trend, schedule: Schedule, cfg: Plateau) -> Finding:
    vocab, chat = configured(run, "vocabulary"), range_of("chat_loss")
    size = vocab.number if vocab is not None else None
    uniform = log(size) if size is not None and size > 1 else None
    tuned = regime_of(run) in {ADAPTER, FULL}
    high, lost = tuned and trend.last > chat.hi, tuned and trend.last > range_of("finetune_loss").hi
    high |= uniform is not None and cfg.high * uniform < trend.last < cfg.uniform * uniform
    reason = reason_of(run, schedule) if high else None
    first = curve.row(trend.settled)
    level = f"; ln(vocabulary) is {number(uniform)}" if uniform is not None else ""
    level += f"; chat data give {chat.healthy}" if tuned else ""
    why = f"; {reason.words}" if reason is not None else ""
    fact = fact_evidence(vocab.row) if vocab is not None else None
    return early_plateau.finding(
        f"{curve.raw_name} stayed at {number(trend.last)} from {at_step(first['at'])} on, with the learning rate up",
        f"over the last half it fell by {trend.late_fall:.2%} ± {trend.late_error:.2%}{level}{why}",
        proof(first, curve.row(-1), reason.evidence if reason is not None else fact),
        onset_at(first),
        severity="warning" if high else "info",
        confidence="medium" if high else "low",
        cause=reason.cause if reason is not None else "finetune_loss_high" if lost else "plateau",
        numbers={"level": trend.last, "late_fall": trend.late_fall, "error": trend.late_error},
    )
