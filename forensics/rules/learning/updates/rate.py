"""The learning rate: zero, with a leap, or not as it was configured."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from forensics.analyses.learning.losses import fell_by, judged, loss_beside, losses
from forensics.analyses.learning.lr_config import Said, configured, number_of
from forensics.analyses.learning.lr_schedule import Again, Schedule, climbs, schedule_of, warms_again
from forensics.analyses.learning.objective import reinforced
from forensics.analyses.learning.rate import OVER_PEAK, Warming, Zero, ended_early, reached_its_end, rose_to_the_end
from forensics.case.curves.loss import Curve, curves
from forensics.case.endings import ending
from forensics.case.progress import ledger
from forensics.knowledge.vocabulary import keys_of
from forensics.rules.kit import (
    Finding,
    Findings,
    Row,
    Run,
    Severity,
    at_step,
    fact_evidence,
    number,
    onset_at,
    proof,
    rule,
)
from forensics.rules.learning.flat import FLAT, is_flat


@rule("LRN008 lr-zero", "metrics", confidence="high", cause="lr_zero")
def lr_zero(run: Run, cfg: Zero) -> Findings:
    """Find the first learning rate that was zero all along, else the first that ended too early."""
    every = [schedule_of(c) for c in judged(run, "lr") if len(c) > cfg.few]
    long = [s for s in every if len(s.curve) >= cfg.records]
    if long and all(s.zeros >= cfg.always for s in long):
        yield from _always(run, long[0])
        return
    for s in every:
        if ended_early(s, cfg):
            words = "next to nothing" if s.curve.values[s.dead] else "zero"
            yield _zero(s, s.dead, Severity.WARNING, f"{words} from {at_step(s.curve.step(s.dead))} to the end")
            return


def _always(run: Run, schedule: Schedule) -> Findings:
    one = loss_beside(run, schedule.curve)
    if one is None or one.levels is None or not is_flat(one.levels, FLAT):
        return
    # the loss of a policy may be flat while it learns
    severity = Severity.WARNING if reinforced(run) else Severity.ERROR
    yield _zero(schedule, 0, severity, "zero in every record", one.curve.row(-1))


def _zero(schedule: Schedule, at: int, severity: Severity, words: str, *more: Row) -> Finding:
    first = schedule.curve.row(at)
    left = len(schedule.curve) - at
    return lr_zero.finding(
        f"the learning rate is {words}",
        f"{left} of {len(schedule.curve)} records"
        + (f"; the value before them is {number(schedule.before_dead)}" if at else ", and the loss did not fall"),
        proof(first, schedule.curve.row(-1), *more),
        severity=severity,
        numbers={"zeros": schedule.zeros, "peak": schedule.peak},
    )


class Jump(Again, frozen=True):
    """Thresholds of LRN009; a rate that climbs has `side` records on either side of the trough that it climbs from.

    Of fewer than `records` a leap counts that goes `far` times above all before: no schedule makes one.
    """

    records: int = 20
    fewest: int = 10
    far: float = 10.0
    few: int = 2
    over_peak: float = OVER_PEAK
    side: int = 5


@rule("LRN009 lr-jump", "metrics", cause="lr_jump")
def lr_jump(run: Run, cfg: Jump) -> Findings:
    """Find the first learning rate that leaps or climbs above its peak or warms up again, else one that leaps below."""
    every = [schedule_of(c) for c in curves(run, "lr") if len(c) >= cfg.fewest]
    leaps = [_leap(s, s.ups[0], cfg) for s in every if 0 < len(s.ups) <= cfg.few and _leaps(s, s.ups[0], cfg)]
    found = [*leaps, *(hit for s in every if len(s.curve) >= cfg.records for hit in _other_rise(s.curve, cfg))]
    if found:
        yield max(found, key=lambda f: f.severity.rank)


def _leaps(schedule: Schedule, at: int, cfg: Jump) -> bool:
    """Whether a rate that rose was there before and after it, for long enough or by far."""
    values = schedule.curve.values
    enough = len(values) >= cfg.records or float(values[at]) >= cfg.far * float(values[:at].max())
    return at < len(values) - 1 and enough


def _leap(schedule: Schedule, at: int, cfg: Jump) -> Finding:
    curve = schedule.curve
    before, after = float(curve.values[at - 1]), float(curve.values[at])
    over = after > cfg.over_peak * float(curve.values[:at].max())
    row = curve.row(at)
    return lr_jump.finding(
        f"the learning rate jumps from {number(before)} to {number(after)} at {curve.where(at)}",
        "it is higher than ever before" if over else "it had been falling or constant",
        proof(row, curve.row(at - 1)),
        onset_at(row, curve.step(at - 1)),
        severity="warning" if over else "info",
        confidence="medium" if over else "low",
        numbers={"before": before, "after": after},
    )


def _other_rise(curve: Curve, cfg: Jump) -> Findings:
    again, trough = warms_again(curve.values, cfg), climbs(curve.values, cfg.over_peak, cfg.side)
    if again is not None:
        words = f"falls to {{after}} at {{at}} and warms up again, as it did from {at_step(curve.step(0))} on"
        yield _rise(curve, (again - 1, again), words, "schedule_restarted")
    elif trough is not None:
        words = f"rises again from {{at}} on, to {number(curve.values[trough:].max())}, above its peak before"
        yield _rise(curve, (int(np.argmax(curve.values[:trough])), trough), words, "lr_jump")


def _rise(curve: Curve, places: tuple[int, int], words: str, cause: str) -> Finding:
    before, after = (float(curve.values[place]) for place in places)
    row = curve.row(places[1])
    return lr_jump.finding(
        "the learning rate " + words.format(after=number(after), at=at_step(row["at"])),
        f"it had been {number(before)} at {at_step(curve.step(places[0]))}",
        proof(row, curve.row(places[0])),
        onset_at(row, curve.step(places[1] - 1)),
        severity="warning",
        confidence="medium",
        cause=cause,
        numbers={"before": before, "after": after},
    )


class AsConfigured(Struct, frozen=True):
    """Thresholds of LRN010: shares of the peak, of the steps, of the warm-up; a warm-up has `warmup` steps or more."""

    records: int = 10
    at_peak: float = 0.95
    early: float = 0.2
    warmup: int = 10
    finished: float = 0.9
    off: float = 0.05
    left: float = 0.3


@rule("LRN010 lr-not-as-configured", "metrics facts events progress")
def lr_not_as_configured(run: Run, cfg: AsConfigured) -> Findings:
    """Compare the longest logged learning rate with the configuration."""
    logged = [c for c in curves(run, "lr") if len(c) >= cfg.records and c.attempt == 0]
    if not logged:
        return
    schedule = schedule_of(max(logged, key=len))
    yield from _never_warm(run, schedule, Warming())
    if schedule.peak <= 0:
        return
    yield from _warmup(run, schedule, cfg)
    yield from _decay(run, schedule, cfg)
    yield from _peak(run, schedule, cfg)


def _never_warm(run: Run, schedule: Schedule, cfg: Warming) -> Findings:
    if reinforced(run) or not rose_to_the_end(schedule, cfg) or not reached_its_end(run, schedule, cfg):
        return
    fall = max((fell_by(one) for one in losses(run)), default=1.0)
    if fall > cfg.fell:
        return
    last = schedule.curve.row(-1)
    yield lr_not_as_configured.finding(
        f"the warm-up is longer than the run: the learning rate still rises at the end, {at_step(last['at'])}",
        f"the rate rose along a line from {number(float(schedule.curve.values[0]))} to {number(schedule.peak)},"
        f" and the loss fell by {fall:.0%} only",
        proof(last, schedule.curve.row(0)),
        onset_at(schedule.curve.row(0)),
        severity="warning",
        confidence="medium",
        cause="lr_not_as_configured",
        numbers={"logged": schedule.peak, "fall": fall},
    )


def _warmup(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    steps, share = number_of(run, "warmup_steps"), number_of(run, "warmup_ratio")
    said = configured(run, "warmup_steps" if steps else "warmup_ratio")
    length = steps or (share or 0) * (ledger(run).planned("step") or 0)
    first = schedule.curve.step(0)
    if said is None or length < cfg.warmup or first is None or first > cfg.early * length:
        return
    if float(schedule.curve.values[0]) >= cfg.at_peak * schedule.peak:
        title = f"no warm-up was made: the learning rate is {number(schedule.curve.values[0])} at {at_step(first)}"
        because = f"the configuration asks for {length:.0f} steps of warm-up"
        yield _unlike(schedule, 0, (title, because, "warmup_missing"), said)


def _decay(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    said, bars = configured(run, "scheduler"), (one.plan for one in ledger(run).of("train", "step"))
    last, v = schedule.curve.step(-1), schedule.curve.values
    ended = ending(run).success is not None
    total = ledger(run).planned("step") or max(bars, default=last if ended else None)
    if total is not None and last is not None:
        ended = cfg.finished * total <= last <= total / cfg.finished
    if said is None or not ended:
        return
    lowest = number_of(run, "min_lr")
    decays = said.text.lower().startswith(keys_of("schedule_that_decays"))
    if not decays or (lowest is not None and lowest >= cfg.at_peak * schedule.peak):
        return
    left = float(v[-max(1, len(v) // 50) :].min()) / schedule.peak
    place = at_step(last) if last is not None else ""
    length = f" over {total:.0f} steps" if total is not None else ""
    is_to_zero = said.text.lower() in keys_of("schedule_to_zero")
    if is_to_zero and lowest is None and cfg.left <= left < cfg.at_peak:
        where = f"at its end, {place}," if place else "at its end,"
        title = f"the schedule is longer than the run: {where} the rate is {left:.0%} of its peak"
        because = f"{said.text} ends near zero" + (f", and the run has {total:.0f} steps" if total is not None else "")
        yield _unlike(schedule, len(v) - 1, (title, because, "schedule_longer"), said)
    if left >= cfg.at_peak:
        title = f"no decay was made: the learning rate is still {number(v[-1])} at {place or 'the end'}"
        because = f"the configuration asks for {said.text}{length}"
        yield _unlike(schedule, len(v) - 1, (title, because, "decay_missing"), said)


def _peak(run: Run, schedule: Schedule, cfg: AsConfigured) -> Findings:
    said, v = configured(run, "lr"), schedule.curve.values
    if said is None or said.number is None or said.number <= 0 or not _is_past(v, schedule):
        return
    ratio = schedule.peak / said.number
    if not 1 - cfg.off <= ratio <= 1 + cfg.off:
        title = f"the highest learning rate is {number(schedule.peak)}, {ratio:.3g} times the configured {said.text}"
        because = "the logged rate had passed its peak"
        yield _unlike(schedule, schedule.top, (title, because, "peak_differs"), said, Severity.INFO)


def _is_past(values: np.ndarray, schedule: Schedule) -> bool:
    """Whether the peak is behind: three records at it, or a lower value after it."""
    at_peak = values >= 0.999 * schedule.peak
    return int(at_peak.sum()) >= 3 or bool((values[schedule.top :] < 0.99 * schedule.peak).any())


def _unlike(
    schedule: Schedule, at: int, words: tuple[str, str, str], said: Said, severity: Severity = Severity.WARNING
) -> Finding:
    return lr_not_as_configured.finding(
        words[0],
        words[1],
        proof(schedule.curve.row(at), fact_evidence(said.row)),
        severity=severity,
        confidence="medium" if severity is Severity.WARNING else "low",
        cause=words[2],
        causal="root" if severity is Severity.WARNING else "context",
        numbers={"logged": float(schedule.curve.values[at]), "configured": said.number or said.text},
    )
