"""A training loss that leaves its level: for good, by a step, or for a spike."""

from __future__ import annotations

from math import log

import numpy as np

from forensics.analyses.learning.causes import common_cause
from forensics.analyses.learning.course import Departure
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import Loss, burst, kind, losses, staged, stepped
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.learning.ranks import parted
from forensics.analyses.learning.rate import jump_before
from forensics.analyses.learning.spikes import Spike
from forensics.case.curves.loss import Curve, beside
from forensics.rules.kit import Finding, Findings, Run, Severity, at_step, number, onset_at, proof, rule
from forensics.stats.spread import Floats, behind_last, median_of

#: No training starts from a loss of this size.
_ABSURD = 1e10
#: And above this size, far beyond any mean cross-entropy, no loss moves by a factor of e from each record to the next.
_LARGE, _SWING = 1e3, 1.0
#: A rise within this share of the records, from this share of the first level or more, follows no learning.
_EARLY, _FELL = 0.25, 0.9
#: Ranks train one model. Of 5,000 ranks that print 26 values of pure noise, 5 to 12 leave their level by chance; where
#: fewer than this share of the ranks do, the model did not.
_CHANCE = 1 / 64
#: So far above its level a spike is a large one.
_MAJOR = 2.0


@rule("LRN001 diverged", "metrics", config=Limits)
def diverged(run: Run) -> Findings:
    """Find the source whose training loss left its best level for good: the worst first, then the earliest onset."""
    if reinforced(run):
        return
    apart = parted(run)
    alone = apart.together.curves[apart.odd] if apart is not None and apart.how == "own" else None
    every = losses(run)
    found = [hit for one in every if one.curve is not alone and (hit := _judge(run, one)) is not None]
    ranks = len({one.curve.rank for one in every})
    if found and len(found) >= _CHANCE * ranks:
        yield min(found, key=lambda f: (-f.severity.rank, f.onset.step if f.onset.step is not None else 1 << 62))


def _judge(run: Run, loss: Loss) -> Finding | None:
    gone, values = loss.gone, loss.curve.values
    if len(values) > 1 and not loss.curve.ends_nonfinite and median_of(values) > _ABSURD:
        return _absurd(loss)
    severity = _severity(gone, kind(run, loss), run.threshold(Limits)) if gone is not None else None
    if gone is None or severity is None:
        return _swinging(loss) if len(values) >= run.threshold(Limits).records and _swings(values) else None
    if staged(run, loss) or improved(run, loss.curve, gone.onset, gone.risen) or _is_summed(run, loss, gone):
        return None
    return _diverged_finding(run, loss, gone, severity)


#: A log that sums over the steps since its last line: the first record holds one step, the next so much of all of them.
_SHARE, _STEPS = (0.6, 1.2), 5
#: And the sums fall to this share of the first of them, as no loss that diverged does.
_LEARNED = 0.8


def _is_summed(run: Run, loss: Loss, gone: Departure) -> bool:
    """Whether only the first record is lower: by the number of steps over which each later one is summed."""
    curve, first, second = loss.curve, loss.curve.step(0), loss.curve.step(1)
    if gone.onset != 1 or first is None or second is None or second - first < _STEPS:
        return False
    if not _is_of_steps(curve, second - first):
        return False
    norm = beside(run, curve, "grad_norm")
    if norm is not None and len(norm) == len(curve) and norm.values[0] > 0:
        if _is_of_steps(norm, second - first):
            return True
        if norm.values[1] > _MAJOR * norm.values[0]:
            return False
    values = curve.values
    return median_of(values[-max(1, len(values) // 10) :]) < _LEARNED * float(values[1])


def _is_of_steps(curve: Curve, steps: int) -> bool:
    low, high = _SHARE
    first, second = float(curve.values[0]), float(curve.values[1])
    return low * steps * first <= second <= high * steps * first


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
    certain = gone.records >= cfg.records and gone.clear and (lasts or gone.above > 1)
    return Severity.ERROR if certain else Severity.WARNING


def _diverged_finding(run: Run, loss: Loss, gone: Departure, severity: Severity) -> Finding:
    curve, i = loss.curve, gone.onset
    step, last = curve.step(i), curve.step(i - 1) if i else None
    jump = jump_before(run, curve, i)
    raised = f"the learning rate had jumped from {number(jump[1])} to {number(jump[2])}" if jump is not None else ""
    first = jump[0] if jump is not None else curve.row(i)
    over = "the last level is above the lowest one by more than noise explains"
    back = "no later level comes back to it" if severity is Severity.ERROR else over
    of_input = stepped(run, loss) or (_in_one_step(loss.curve, gone) and not burst(run, loss))
    course = "level_shift" if of_input else _of_batch_or_course(curve)
    # nothing was learned before the rise: it began with the run, or left from about the first level
    early = gone.onset <= _EARLY * gone.records and gone.above >= gone.rise * _FELL
    cause = "diverged_from_start" if early and gone.how != "explosion" else course
    return diverged.finding(
        f"{curve.raw_name} {_words(gone)}: {gone.best:.4g} → {gone.final:.4g}"
        + (f" from step {step}" if step is not None else ""),
        raised or back,
        proof(curve.row(i), first if jump else None, curve.row(-1)),
        onset_at(first, last if jump is None else None),
        severity=severity,
        confidence="high" if gone.how == "explosion" and severity is Severity.ERROR else "medium",
        cause="lr_jump" if jump is not None else cause,
        numbers={"best": gone.best, "final": gone.final, "rise": gone.rise},
    )


#: A single update multiplies a loss by so much where its batch asks for the impossible; a rate that is too high takes
#: a few (Chowdhery et al. 2022, PaLM, 5.1, restart before such a spike and skip its batches).
_AT_ONCE = 1000.0
#: Losses before it that say what the level was.
_CALM = 3


def _of_batch_or_course(curve: Curve) -> str:
    """The cause of a loss that exploded: its batch where it did so between two steps that follow each other."""
    values = curve.values
    tops = np.maximum.accumulate(values)
    hits = np.flatnonzero(values[_CALM:] >= _AT_ONCE * np.maximum(tops[_CALM - 1 : -1], 1e-9))
    at = int(hits[0]) + _CALM if len(hits) else 0
    last, step = (curve.step(at - 1), curve.step(at)) if at else (None, None)
    return "burst_at_once" if last is not None and step is not None and step - last == 1 else "diverged"


#: A rise to more than twice the level is of one step where that step holds so much of it, in logarithms.
_DOUBLED, _WHOLE = 2.0, 0.9


def _in_one_step(curve: Curve, gone: Departure) -> bool:
    """Whether one update to the next made the whole rise: a course that diverges takes several, other data only one."""
    i, last, step = gone.onset, curve.step(gone.onset - 1) if gone.onset else None, curve.step(gone.onset)
    if last is None or step is None or step - last != 1 or gone.how == "explosion":
        return False
    before, at_once, top = (float(value) for value in (curve.values[i - 1], curve.values[i], curve.values[i:].max()))
    return at_once >= _DOUBLED * before > 0 and log(at_once / before) >= _WHOLE * log(top / before)


def _words(gone: Departure) -> str:
    if gone.how == "explosion":
        return "exploded"
    return "rose at the end" if gone.left < 4 else "rose and stayed"


def _absurd(loss: Loss) -> Finding:
    curve = loss.curve
    at = min(behind_last(curve.values <= _ABSURD), len(curve) - 1)
    row = curve.row(at)
    return diverged.finding(
        f"{curve.raw_name} is absurdly large: {curve.values[0]:.4g} → {curve.values[-1]:.4g}",
        f"no training starts from a loss above {_ABSURD:.0e}",
        proof(row, curve.row(-1)),
        onset_at(row, curve.step(at - 1) if at else None),
        severity="error",
        confidence="high",
        cause=_of_batch_or_course(curve),
        numbers={"best": float(curve.values.min()), "final": float(curve.values[-1])},
    )


def _swings(values: Floats) -> bool:
    far = float(values.min()) > 0 and median_of(values) > _LARGE
    return far and median_of(np.abs(np.diff(np.log(values)))) > _SWING


def _swinging(loss: Loss) -> Finding:
    curve = loss.curve
    factor, middle = np.exp(median_of(np.abs(np.diff(np.log(curve.values))))), median_of(curve.values)
    return diverged.finding(
        f"{curve.raw_name} swings by a factor of {factor:.2g} from record to record around {middle:.2g}",
        "small enough updates move a loss of that size by far less",
        proof(curve.row(0), curve.row(-1)),
        severity="warning",
        confidence="medium",
        cause="diverged_from_start",
        numbers={"best": float(curve.values.min()), "final": float(curve.values[-1])},
    )


@rule("LRN004 loss-level-shift", "metrics", confidence="medium", cause="level_shift", config=Limits)
def loss_level_shift(run: Run) -> Findings:
    """Find the largest lasting step upwards."""
    if reinforced(run):
        return
    found = [(one, gone) for one in losses(run) if (gone := _shift(run, one)) is not None]
    if not found:
        return
    loss, gone = max(found, key=lambda pair: pair[1].size)
    lasts = gone.net > run.threshold(Limits).jump and gone.how == "jump" and gone.stays and not staged(run, loss)
    curve, first = loss.curve, loss.curve.row(gone.onset)
    yield loss_level_shift.finding(
        f"{curve.raw_name} stepped up by {gone.size - 1:.0%} at {curve.where(gone.onset)}",
        f"the level of the last records is {gone.net:.2f} times the one just before the step",
        proof(first, curve.row(-1)),
        onset_at(first, curve.step(max(0, gone.onset - 1))),
        severity="warning" if lasts else "info",
        numbers={"size": gone.size, "net": gone.net},
    )


def _shift(run: Run, loss: Loss) -> Departure | None:
    gone = loss.gone
    if gone is None or (kind(run, loss) != "level_shift" and not staged(run, loss)) or gone.how == "climb":
        return None
    return None if improved(run, loss.curve, gone.onset, gone.risen) else gone


#: So many large ones are no accident of a single batch where they share a cause, and severe ones in any case.
_FREQUENT, _SEVERE = 3, 2.5
#: Large ones that hold so many of all records come again and again: of 60 records four.
_AGAIN = 0.05
#: A burst that no noise and no new data makes, and records at the end that tell the level after it.
_FAR_OUT, _LAST = 100.0, 5
#: A severe one that holds the loss up for this share of all records has cost as much of the run.
_COSTLY = 0.2
#: A spike of which no record reaches this share of the first loss, of a loss that was minimised to nearly nothing.
_SLIGHT = 1e-3


def _spikes_of(run: Run, loss: Loss) -> tuple[Spike, ...]:
    """Give the spikes of a loss, with a burst after which it learned on without finding its level again."""
    course, gone = loss.course, loss.gone
    if course is None or gone is None:
        return course.spikes if course is not None else ()
    is_learned_anew = gone.slope < 0 and gone.lost < run.threshold(Limits).lost  # above it LRN001 tells a divergence
    bursts = gone.how in {"jump", "spike"} and gone.size >= _FAR_OUT and is_learned_anew
    lasting = (Spike(gone.onset, gone.size, None),) if bursts else ()
    return course.spikes + lasting


def _lasting(curve: Curve, spike: Spike) -> Finding:
    first, last = curve.row(spike.index), curve.step(spike.index - 1)
    top = float(curve.values[spike.index :].max())
    best, final = float(curve.values[: spike.index].min()), median_of(curve.values[-_LAST:])
    return loss_spike.finding(
        f"{curve.raw_name} burst to {top:.4g} at {at_step(first['at'])}, and fell again to {final:.4g}"
        f" (before: {best:.4g})",
        "one update threw the weights off; what followed is learned anew",
        proof(first, curve.row(spike.index - 1), curve.row(-1)),
        onset_at(first, last),
        severity="warning",
        confidence="medium",
        cause="loss_spike",
        numbers={"spikes": 1, "peak": number(spike.peak), "best": best, "final": final},
    )


def _is_slight(curve: Curve, spike: Spike) -> bool:
    top = float(curve.values[spike.index : spike.recovered].max())
    return top <= _SLIGHT * median_of(curve.values[:_LAST])


@rule("LRN003 loss-spike-recovered", "metrics facts", config=Limits)
def loss_spike(run: Run) -> Findings:
    """Note the spikes of the curve that has most of them."""
    if reinforced(run):
        return
    known = [(one.curve, spikes) for one in losses(run) if (spikes := _spikes_of(run, one))]
    if not known:
        return
    curve, spikes = max(known, key=lambda pair: len(pair[1]))
    worst = max(spikes, key=lambda s: s.peak)
    if worst.recovered is None:
        yield _lasting(curve, worst)
        return
    first = curve.row(worst.index)
    back = worst.recovered
    name = curve.raw_name
    many = f"{len(spikes)} spikes of {name}, the highest" if len(spikes) > 1 else f"a spike of {name}"
    major = [spike for spike in spikes if spike.peak >= _MAJOR and not _is_slight(curve, spike)]
    cause, shared = common_cause(run, curve, major) if len(major) >= _FREQUENT else ("", "")
    severe = [spike for spike in major if spike.peak >= _SEVERE]
    longest = max(((spike.recovered or len(curve)) - spike.index for spike in severe), default=0)
    rise = sum(log(spike.peak) for spike in severe)
    often = len(major) > _FREQUENT and len(major) >= _AGAIN * len(curve)
    warns = bool(cause) or often or rise >= _FREQUENT * log(_SEVERE) or longest >= _COSTLY * len(curve)
    later = f"{back - worst.index} records" if back - worst.index != 1 else "a record"
    yield loss_spike.finding(
        f"{many} {worst.peak:.2f} times its level, at {curve.where(worst.index)}, recovered",
        f"the level before it was back at {curve.where(back)}, {later} later"
        + (f"; {shared}" if shared and warns else ""),
        proof(first, curve.row(back)),
        onset_at(first, curve.step(worst.index - 1)),
        severity="warning" if warns else "info",
        confidence="high" if worst.peak >= _MAJOR and not warns else "medium",
        cause=cause or "loss_spike",
        causal="root" if warns else "context",
        numbers={"spikes": len(spikes), "peak": number(worst.peak), "records": back - worst.index},
    )
