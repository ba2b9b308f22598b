"""LRN001 diverged: the training loss left its best level for good, and stayed finite.

What it detects: a loss that rises far above the level it had reached and never comes back; a loss frozen at one value
above its best (a model that answers the same to everything: ln of the vocabulary size for a language model); a
loss that is absurdly large from the first record.

Why it matters: the run goes on, nothing crashes, and everything after the onset is lost.

How it decides: the level of the last tenth of the records is above the best level by a share of it and by many times
the noise between neighbours, no value after the onset returns below the middle of the two, and the loss had not come
back from such a level again and again before (a log of many short optimizations); or the last two records
or more are twice as high as anything before; or the last tenth is a hundred times the first record, even where the loss
falls from a peak in between. A smaller or more gradual rise is judged on logarithms against
autocorrelated noise: a note below a fifth, which later epochs over the same data show as well; from there a warning,
and an error when it lasts and does not turn. An evaluation loss that is no worse after the onset than before it
contradicts, and silences the rule. Runs that log rewards, and losses that end in NaN, are left to other rules.

What else looks like this: an auxiliary loss that grows by design while the evaluation improves; a new stage or a
resumed run with other data; a spike that recovers.

What to do next: resume from a checkpoint before the onset with a lower learning rate, or skip the data of that step.

References: Chowdhery et al. 2022, PaLM, section 5.1 (loss spikes); Zhang et al. 2022, OPT-175B logbook.

Example:
    ```metrics step,name,value
    1,loss,2.5
    2,loss,9.75
    3,loss,9.25
    4,loss,9.25
    5,loss,9.25
    6,loss,9.25
    7,loss,9.25
    8,loss,9.25
    9,loss,9.25
    10,loss,9.25
    11,loss,9.25
    12,loss,9.25
    ```
    => LRN001 error confidence=medium step=2 step_lo=1 cause=frozen_loss best=2.500 final=9.250
Not this:
    ```metrics step,name,value
    1,loss,6.5
    2,loss,5.5
    3,loss,4.75
    4,loss,4.5
    5,loss,9.5
    6,loss,4.25
    7,loss,4.0
    8,loss,3.75
    9,loss,3.5
    10,loss,3.75
    11,loss,3.5
    12,loss,3.25
    ```
    => nothing
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from forensics.case.evidence import metric_evidence
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning._contrary import improved, reinforced
from forensics.rules.learning._departure import course_of, kind_of
from forensics.rules.learning._limits import Limits
from forensics.rules.learning._rise import Rise, rise_of
from forensics.signals.loss_curve import Curve, Floats, curves
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of LRN001.

    `rise` is a share of the best level and `sigmas` a multiple of the noise, both of which the rise must exceed;
    `absurd` is a loss that no training starts from; `left_behind` times the first value is a level from which a falling
    loss has not come back either; `frozen` is how many equal records at the end, at least a third
    of all, make a frozen loss; `exploded` times the highest value before is what the last two or more records of a
    loss that exploded just before the end must exceed. What is smaller or more gradual has the limits of LRN003, and
    is an error only when it lasts for `wasted_share` of the records. A loss that came back from such a level `returns`
    times may do so again.
    """

    records: int = 20
    window: int = 5
    rise: float = 0.2
    sigmas: float = 8.0
    frozen: int = 5
    absurd: float = 1e10
    exploded: float = 2.0
    left_behind: float = 100.0
    wasted_share: float = 0.1
    returns: int = 3


_LIMITS = Limits()


@rule("LRN001", shape=Shape.LEARNING, needs=("metrics",), config=Config)
def diverged(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the source whose training loss left its best level for good: the worst first, then the earliest onset."""
    cfg = cfg or Config()
    if reinforced(run):
        return
    evals = curves(run, "eval_loss")
    found = [hit for c in curves(run, "loss") if (hit := _judge(c, evals, cfg)) is not None]
    if found:
        yield min(found, key=lambda f: (-f.severity.rank, f.onset.step if f.onset.step is not None else 1 << 62))


def _judge(curve: Curve, evals: tuple[Curve, ...], cfg: Config) -> Finding | None:
    values, count = curve.values, len(curve)
    if curve.ends_nonfinite:
        return None
    if count >= cfg.frozen and float(np.median(values)) > cfg.absurd:
        high = np.flatnonzero(values <= cfg.absurd)
        low = int(high[-1]) + 1 if len(high) else 0
        absurd = Rise(float(values[0]), float(values[-1]), min(low, count - 1), 0.0, 0)
        return _finding(curve, absurd, "is absurdly large")
    frozen = rise_of(values, window=1)
    if frozen is not None and _is_frozen(frozen, count, cfg) and not improved(curve, frozen.onset, evals):
        return _finding(curve, frozen, "is frozen")
    burst = _burst(values, cfg)
    if burst is not None and not improved(curve, burst.onset, evals):
        return _finding(curve, burst, "exploded at the end")
    return _lasting(curve, evals, cfg)


def _lasting(curve: Curve, evals: tuple[Curve, ...], cfg: Config) -> Finding | None:
    """Judge a loss that rose and did not come down again: at once, by a jump, or gradually."""
    values, count = curve.values, len(curve)
    early = _early(values, cfg)
    if early is not None and not improved(curve, early.onset, evals):
        return _finding(curve, early, "exploded and did not come back", back="where it began")
    rise = rise_of(values, window=max(cfg.window, min(51, count // 60))) if count >= cfg.records else None
    if rise is not None and _is_rise(rise, curve, cfg) and not improved(curve, rise.onset, evals):
        return _finding(curve, _begun(curve, rise), "rose and stayed")
    return _slow(curve, evals, cfg)


def _begun(curve: Curve, rise: Rise) -> Rise:
    """Put the onset of a gradual rise where the level began to climb, not half way up."""
    course = course_of(curve, _LIMITS)
    gone = course.departure if course is not None else None
    gradual = gone is not None and gone.how == "climb" and gone.onset < rise.onset
    return replace(rise, onset=gone.onset) if gone is not None and gradual else rise


def _slow(curve: Curve, evals: tuple[Curve, ...], cfg: Config) -> Finding | None:
    """Find a rise that is smaller or more gradual than the tests before ask, but more than chance."""
    course = course_of(curve, _LIMITS)
    gone = course.departure if course is not None else None
    if course is None or gone is None or not gone.climbing or kind_of(gone, _LIMITS) != "divergence":
        return None
    if improved(curve, gone.onset, evals):
        return None
    rise = Rise(gone.best, gone.final, gone.onset, course.noise.sd * gone.final, 0)
    if gone.rise <= 1 + cfg.rise:
        return _finding(curve, rise, "rose and stayed", Severity.INFO)
    wasted = gone.slope >= 0 and gone.left >= cfg.wasted_share * len(curve)
    return _finding(curve, rise, "rose and stayed", Severity.ERROR if wasted else Severity.WARNING)


def _is_frozen(rise: Rise, count: int, cfg: Config) -> bool:
    return rise.frozen >= max(cfg.frozen, count // 3) and rise.best > 0 and rise.final > rise.best * (1 + cfg.rise)


def _is_rise(rise: Rise, curve: Curve, cfg: Config) -> bool:
    high = rise.final - rise.best
    return (
        rise.best > 0
        and high > cfg.rise * rise.best
        and high > cfg.sigmas * rise.noise
        and rise.returns < cfg.returns
        and cfg.window <= rise.onset <= len(curve) - cfg.window
    )


def _burst(values: Floats, cfg: Config) -> Rise | None:
    """Find a loss whose last two or more values are far above every value before them."""
    count = len(values)
    if count < cfg.records or values.min() <= 0:
        return None
    for first in range(count - cfg.window, count - 1):
        if values[first:].min() / cfg.exploded > values[:first].max():
            return Rise(float(values.min()), float(values[-1]), first, 0.0, 0)
    return None


def _early(values: Floats, cfg: Config) -> Rise | None:
    """Find a loss whose whole last tenth is far above where it began, whatever it did in between."""
    first, tail = float(values[0]), max(cfg.window, len(values) // 10)
    if len(values) < 2 * cfg.window or first <= 0 or float(values[-tail:].min()) < max(cfg.left_behind * first, 1.0):
        return None
    back = np.flatnonzero(values <= first * math.sqrt(cfg.left_behind))
    return Rise(first, float(np.median(values[-tail:])), int(back[-1]) + 1, 0.0, 0)


def _finding(
    curve: Curve,
    rise: Rise,
    words: str,
    severity: Severity = Severity.ERROR,
    *,
    back: str = "the lower half of that rise",
) -> Finding:
    i = rise.onset
    step, last = curve.step(i), curve.step(i - 1) if i else None
    uniform = round(math.exp(rise.final)) if rise.frozen and 1 < rise.final < 14 else None
    guess = f"; ln({uniform}) is what a uniform answer over that many classes costs" if uniform else ""
    return Finding(
        rule="LRN001",
        shape=Shape.LEARNING,
        severity=severity,
        confidence=Confidence.MEDIUM,
        title=f"{curve.raw_name} {words}: {rise.best:.4g} → {rise.final:.4g}"
        + (f" from step {step}" if step is not None else ""),
        because=f"no later value comes back to {back}{guess}"
        if severity is Severity.ERROR
        else "the last level lies above the lowest one by more than noise explains",
        evidence=(metric_evidence(curve.row(i)), metric_evidence(curve.row(-1), EvidenceRole.RELATED)),
        onset=Onset(step=step, t_ns=curve.row(i)["t_ns"], rank=curve.rank, step_lo=last),
        cause="frozen_loss" if words == "is frozen" else "diverged",
        causal=Causal.ROOT,
        numbers={"best": rise.best, "final": rise.final, "noise": rise.noise},
        likely=("the learning rate is too high for this point of the run", "bad data at the onset"),
        next=(
            "resume from a checkpoint before the onset with a lower learning rate",
            "leave regularisation as it is until the loss no longer diverges: it hides the cause",
        ),
    )
