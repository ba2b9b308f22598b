"""A clock whose steps took longer from some point on: for good, for a while, by a ramp, or by single stalls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from msgspec import Struct

from forensics.analyses.pace.account import COARSE, Gravity, Paced, gravest, paced, pauses_of, tier_of
from forensics.analyses.pace.change import Change
from forensics.analyses.pace.gaps import Gap, longest_gap
from forensics.analyses.pace.parts import Rise, data_rise
from forensics.analyses.pace.pauses import share_of_time
from forensics.analyses.traces.gpu_clocks import SAME_ONSET_NS
from forensics.case.endings import ending
from forensics.case.epochs import epoch_scale
from forensics.declared import Fields
from forensics.knowledge.vocabulary import stands_for
from forensics.registry import Rule
from forensics.rules.kit import (
    Confidence,
    Evidence,
    Finding,
    Findings,
    Onset,
    Run,
    Severity,
    at_step,
    number,
    proof,
    rule,
)
from forensics.rules.slowdown.hardware import gpu_clocks_throttled
from forensics.rules.slowdown.recompiles import recompiling
from forensics.rules.slowdown.traces.grew import GREW
from forensics.values import replace

#: A rate, or a time in seconds, from here on is printed without decimals.
_WHOLE = 1000
#: Records so far apart, as a share of an epoch, come once in each.
_SAME = 0.1


def severity_of(one: Paced, change: Change, cfg: Gravity) -> Severity:
    """Give the severity of a loss of time: grave ones are errors, mild ones and what is not sure are warnings."""
    if (tier := tier_of(one, change, cfg)) == "grave" and confidence_of(one, change) is not Confidence.LOW:
        return Severity.ERROR
    return Severity.INFO if tier == "note" else Severity.WARNING


def slower(run: Run, one: Paced, change: Change) -> str:
    """Say how fast the run is and was, in the unit in which people think of it: seconds of a step, else a rate."""
    before, after, unit = change.before, change.before * change.ratio, one.clock.unit
    if unit == "step":
        took = (f"{seconds:.3g} s" if seconds < _WHOLE else f"{seconds:,.0f} s" for seconds in (after, before))
        whole = "an epoch" if _is_of_epochs(run, one) else "a step"
        return f"{whole} takes {' instead of '.join(took)} ({change.ratio:.2f} times as long)"
    rates = (f"{rate:.4g}" if (rate := 1 / seconds) < _WHOLE else f"{rate:,.0f}" for seconds in (before, after))
    noun, per, whose = unit.partition("/")
    rate_of = f"{noun}s per {whose} per second" if per else f"{noun}s per second"
    name = str(one.row(change.first)["raw_name"]) if unit == "flop" else rate_of
    return f"{name} fell from {' to '.join(rates)} (steps take {change.ratio:.2f} times as long)"


def _is_of_epochs(run: Run, one: Paced) -> bool:
    """Whether the time is one of epochs: the run counts nothing else, or prints it once in each, as of no step."""
    scale = epoch_scale(run)
    if scale is None or scale.steps == 1:
        return scale is not None
    words = [word for word in re.split(r"[\W_]+", one.clock.name.lower()) if len(word) > 1]
    of_steps = any(stands_for("counter_of_steps", word) for word in words)
    return one.clock.is_printed and not of_steps and abs(one.interval - scale.steps) <= _SAME * scale.steps


def evidence_of(one: Paced, change: Change) -> tuple[Evidence, ...]:
    """Give the first slow record, the last good one, and the last of the slow ones."""
    last = min(change.end, len(one.steady)) - 1
    return proof(*map(one.row, (change.first, max(0, change.first - 1), last)))


def onset_of(one: Paced, change: Change) -> Onset:
    """Give the first slow step, and the step before it as the last good one."""
    t_ns = one.row(change.first)["t_ns"]
    good = one.at(change.first - 1) if change.first else None
    return Onset(one.at(change.first), t_ns if isinstance(t_ns, int) else None, one.clock.rank, good)


def confidence_of(one: Paced, change: Change) -> Confidence:
    """High only where the change is confirmed, far from noise and long on both sides."""
    if not change.confirmed or one.steady.multimodal or one.steady.resolution > COARSE:
        return Confidence.LOW
    long = min(change.first, change.end - change.first) >= 50
    return Confidence.HIGH if change.z >= 8 and long else Confidence.MEDIUM


def measured(one: Paced, change: Change) -> str:
    """Say what the change cost, how many records there are, how noisy they are, and what was set aside."""
    series, paused = one.steady, int(one.steady.paused.sum())
    pauses = ", ".join(f"every {period} steps" for period in dict.fromkeys(p.period for p in series.pauses))
    counted = ((series.warmup, "warm-up record"), (paused, "pause"))
    aside = " and ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in counted if count)
    return (
        f"{100 * one.lost(change):.0f} % of the time was lost; {change.first} records before and "
        f"{change.end - change.first} after, noise {100 * series.spikes.sd:.1f} %, {change.z:.0f} deviations"
        + (f"; {aside} set aside" if aside else "")
        + (f" (pauses {pauses})" if pauses else "")
    )


def _of(made: Rule, one: Paced, change: Change, title: str, **fields: Unpack[Fields]) -> Finding:
    """Make the finding of a rule about one change of a clock."""
    usual: Fields = {"confidence": confidence_of(one, change)}
    shown = evidence_of(one, change)
    return made.finding(title, measured(one, change), shown, onset_of(one, change), **{**usual, **fields})


@rule("SLO001 step-time-level-shift", "metrics checkpoints progress spans", cause="slow_steps")
def step_time_level_shift(run: Run, cfg: Gravity) -> Findings:
    """Find the clock that lost most by a lasting rise of its level."""
    if (found := gravest(run, cfg, "jump", "stairs")) is None:
        return
    one, change = found
    by_plan = ", in even stairs, as a schedule makes them" if change.form == "stairs" else ""
    title = f"{slower(run, one, change)} from {at_step(one.at(change.first))} on{by_plan}"
    numbers = {
        "before_s": change.before,
        "after_s": change.before * change.ratio,
        "ratio": change.ratio,
        "z": change.z,
        "lost": one.lost(change),
        "tier": "confirmed" if change.confirmed else "possible",
    }
    fields: Fields = {"severity": severity_of(one, change, cfg), "culprits": _alone(run, one), "numbers": numbers}
    rise = _of(step_time_level_shift, one, change, title, **fields)
    why = _grown(run, rise.onset.step) or _throttled(run, rise.onset.t_ns)
    waits = _waits(run, one, change)
    if why is not None:
        shown, numbers = proof(*rise.evidence, *why.evidence), {**numbers, **why.numbers}
        rise = replace(rise, title=f"{title}; {why.title}", cause=why.cause, evidence=shown, numbers=numbers)
    elif waits is not None:
        words = f"the wait for data rose from {waits.before:.3g} s to {waits.after:.3g} s"
        shown, numbers = proof(*rise.evidence, waits.bad, waits.good), {**numbers, "data_after_s": waits.after}
        rise = replace(rise, title=f"{title}; {words}", cause="dataloader", evidence=shown, numbers=numbers)
    yield rise


#: So many other ranks that kept their pace show that the slow one is to blame.
_CALM = 2


def _alone(run: Run, one: Paced) -> tuple[int, ...]:
    """Give the rank of a clock where the clocks of the other ranks go on as they were."""
    clock = one.clock
    alike = [p for p in paced(run) if (p.clock.name, p.clock.attempt) == (clock.name, clock.attempt)]
    slow = {p.clock.rank for p in alike if p.change is not None}
    calm = {p.clock.rank for p in alike} - {*slow, None}
    return (clock.rank,) if clock.rank is not None and slow == {clock.rank} and len(calm) >= _CALM else ()


#: A wait that rose by this share of what each step takes longer is why it does, and one that rose by much more is none
#: of its parts.
_PART, _MORE = 0.5, 1.5


def _waits(run: Run, one: Paced, change: Change) -> Rise | None:
    """Give the wait for data where its rise makes most of the rise of the steps."""
    rise = data_rise(run, one.at(change.first), one.clock.rank)
    if rise is None:
        return None
    if one.clock.unit != "step":
        return rise if rise.after > change.ratio * rise.before > 0 else None
    added = change.before * (change.ratio - 1)
    return rise if _PART * added <= rise.added <= _MORE * added else None


def _grown(run: Run, step: int | None) -> Finding | None:
    """Give what grew most of the device's time between two traces, one on each side of the onset."""
    if step is None:
        return None
    told = [(f, f.onset.step_lo, f.onset.step) for grew in GREW for f in grew(run)]
    around = [f for f, low, high in told if low is not None and high is not None and low < step <= high]
    return max(around, key=lambda f: float(f.numbers["after_share"]) - float(f.numbers["before_share"]), default=None)


def _throttled(run: Run, t_ns: int | None) -> Finding | None:
    """Give the clock of a GPU that its driver lowered when the steps became slower."""
    if t_ns is None:
        return None
    known = (f for f in gpu_clocks_throttled(run) if f.severity is Severity.WARNING)
    times = ((f, f.evidence[0].t_ns) for f in known)
    return next((f for f, since in times if since is not None and abs(since - t_ns) <= SAME_ONSET_NS), None)


class Temporary(Struct, frozen=True):
    """Thresholds of SLO002: a warning cost `lost` of the time and is `mild` at least.

    It stands `z` deviations out, or its records rank above the others by blocks. A gap in which nothing was logged is
    one, too, where it cost as much.
    """

    lost: float = 0.02
    mild: float = Gravity().mild
    z: float = 8.0


@rule(
    "SLO002 temporary-slowdown",
    "metrics checkpoints progress spans events",
    cause="temporary_slowdown",
    causal="context",
)
def temporary_slowdown(run: Run, cfg: Temporary) -> Findings:
    """Find the slow stretch that ended and cost most of the time, or the gap in which nothing was logged."""
    gap = longest_gap(run)
    if gap is not None and gap.share >= cfg.lost:
        yield _stood_still(gap)
        return
    found = [(p, p.change) for p in paced(run) if p.change is not None and p.change.kind == "transient"]
    if not found:
        return
    one, change = max(found, key=lambda pair: pair[0].lost(pair[1]))
    clear = change.z >= cfg.z or change.parted
    lost, last = one.lost(change), one.at(min(change.end, len(one.steady) - 1))
    yield _of(
        temporary_slowdown,
        one,
        change,
        f"the time per {one.clock.unit} rose to {change.ratio:.2f} times what it was from step {one.at(change.first)} "
        f"to step {last}, then came back",
        severity="warning" if lost >= cfg.lost and change.ratio >= cfg.mild and clear else "info",
        numbers={"before_s": number(change.before), "ratio": change.ratio, "end_step": last, "lost": lost},
    )


def _stood_still(gap: Gap) -> Finding:
    row, before = gap.clock.row(gap.index), gap.clock.row(max(0, gap.index - 1))
    last = int(row["at"]) - int(row["passed"])
    return temporary_slowdown.finding(
        f"nothing was logged for {gap.seconds / 3600:.1f} hours between step {last} and step {row['at']}",
        f"records are {gap.usual_s:.3g} s apart otherwise; no restart, stop or evaluation explains"
        f" the gap, which is {100 * gap.share:.0f} % of the time",
        proof(row, before),
        Onset(int(row["at"]), rank=gap.clock.rank, step_lo=last),
        severity="warning",
        confidence="medium",
        cause="stood_still",
        numbers={"gap_s": gap.seconds, "usual_s": gap.usual_s, "lost": gap.share},
    )


@rule("SLO003 step-time-ramp", "metrics checkpoints progress spans", cause="slow_ramp")
def step_time_ramp(run: Run, cfg: Gravity) -> Findings:
    """Find the clock that lost most along a ramp."""
    for one, change in filter(None, [gravest(run, cfg, "ramp")]):
        title = f"the time per {one.clock.unit} climbed to {change.ratio:.2f} times what it was, "
        title += f"from step {one.at(change.first)} on"
        numbers = {"before_s": change.before, "ratio": change.ratio, "z": change.z, "lost": one.lost(change)}
        grave = severity_of(one, change, cfg)
        yield _of(step_time_ramp, one, change, title, severity=grave, numbers=numbers, next=("forensics memory RUN",))


class Stalls(Gravity, frozen=True):
    """Thresholds of SLO030; those of `Gravity` are for stalls that begin or become more.

    Stalls without a period that come from the beginning on are told from `always` of the time on, that of saves and
    evaluations left out, where they are `many`, some of them in each half. A run that came to its end has lost nothing
    worth a look where its stalls took less than `little` of its time: as little of a step is no stall at all.
    """

    always: float = 0.3
    many: int = 10
    little: float = 0.05


@rule("SLO030 stalls-more-frequent", "metrics checkpoints progress spans events")
def stalls_more_frequent(run: Run, cfg: Stalls) -> Findings:
    """Find the clock whose stalls add most, else one that stalls from its beginning on, for no compiler."""
    end, found = ending(run), gravest(run, cfg, "stalls", "pauses")
    is_over = end.success is not None or end.reach.is_reached
    for one, change in filter(None, [found]):
        added = change.ratio - 1
        words = f"pauses begin, one every {change.period} steps," if change.period else "slow steps come more often"
        yield _of(
            stalls_more_frequent,
            one,
            change,
            f"from step {one.at(change.first)} on, {words} and add {100 * added:.0f} % of time",
            severity=Severity.INFO if is_over and one.lost(change) < cfg.little else severity_of(one, change, cfg),
            cause="recompiles" if recompiling(run) else "periodic_pauses" if change.period else "stalls",
            numbers={"added": added, "z": change.z, "lost": one.lost(change), "period_steps": change.period},
        )
    steady = max(_stalling(run, cfg), key=lambda pair: pair[1], default=None) if found is None else None
    if steady is not None and not recompiling(run):
        one, share = steady
        slow = one.steady.paused.nonzero()[0]
        yield stalls_more_frequent.finding(
            f"single slow steps take {share:.0%} of the time: {len(slow)} of {len(one.steady)}, at no regular distance",
            "the other steps keep their pace, and neither saves nor evaluations explain the slow ones",
            proof(*(one.row(int(at)) for at in slow[:3])),
            Onset(step=one.at(int(slow[0])), rank=one.clock.rank),
            severity="warning",
            confidence="medium",
            cause="stalls",
            numbers={"share": share, "stalls": len(slow)},
        )


def _stalling(run: Run, cfg: Stalls) -> Iterator[tuple[Paced, float]]:
    """Clocks of printed times of steps that stalled all along, and the share of their time that it took."""
    known = {id(clock): pauses for clock, pauses in pauses_of(run)}
    for one in paced(run):
        slow, pauses = one.steady.paused, known.get(id(one.clock))
        halves = slow[: len(slow) // 2].any() and slow[len(slow) // 2 :].any()
        if one.clock.unit != "step" or one.clock.form == "wall" or pauses is None or pauses.combs:
            continue
        share = share_of_time(one.steady.seconds, slow) - pauses.saving - pauses.evaluating
        if halves and slow.sum() >= cfg.many and not one.steady.multimodal and share >= cfg.always:
            yield one, share
