"""What step times repeat: two levels in turn, pauses with a period, and a unit that is too coarse."""

from __future__ import annotations

from msgspec import Struct

from forensics.analyses.pace.account import COARSE, Paced, Pauses, paced, pauses_of
from forensics.analyses.pace.clocks import Clock
from forensics.analyses.pace.steady import coarseness
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.stats.changes import Modes, modes_of


class TwoTimes(Struct, frozen=True):
    """Thresholds of SLO004: the share of slow steps must lie between `least` and `most`, of `records` at least."""

    least: float = 0.1
    most: float = 0.9
    records: int = 50


@rule(
    "SLO004 two-step-times",
    "metrics checkpoints progress",
    severity="info",
    confidence="medium",
    cause="two_step_times",
    causal="context",
)
def two_step_times(run: Run, cfg: TwoTimes) -> Findings:
    """Find the first clock with two clear modes over the whole run."""
    for one in paced(run):
        found = modes_of(one.steady.logs) if len(one.steady) >= cfg.records and one.change is None else None
        if found is not None and cfg.least <= found.slow <= cfg.most and _mixed(one, found):
            yield _bimodal_finding(one, found)
            return


def _mixed(one: Paced, found: Modes) -> bool:
    """Whether fast and slow steps come in turn, not one after the other."""
    slow = one.steady.logs > found.cut
    turns = int((slow[1:] != slow[:-1]).sum())
    return turns >= 0.5 * 2 * found.slow * (1 - found.slow) * len(slow)


def _bimodal_finding(one: Paced, found: Modes) -> Finding:
    slow = one.steady.logs > found.cut
    first, fast = one.row(int(slow.argmax())), one.row(int((~slow).argmax()))
    high, low = (float(one.steady.seconds[part].mean()) for part in (slow, ~slow))
    return two_step_times.finding(
        f"a {one.clock.unit} takes {low:.3g} s or {high:.3g} s: {100 * found.slow:.0f} % are slow",
        "step times alternate between two levels more than four deviations apart for the whole run",
        proof(first, fast),
        Onset(step=one.at(int(slow.argmax())), rank=one.clock.rank),
        numbers={"slow_share": found.slow, "fast_s": low, "slow_s": high},
    )


class Paused(Struct, frozen=True):
    """Thresholds of SLO005, as shares of the whole time; pauses at evaluations alone are never more than a note.

    `unknown` is for pauses that neither a save nor an evaluation explains, `saving` for saves: healthy jobs that saved
    at every twentieth step spent 18 to 26 % of their time on it, jobs with slow storage from 31 % on. Those of the
    healthy ones were as long as 4 to 7 steps; `dear` is a share for saves as long as `long` steps or more.
    """

    least: float = 0.05
    unknown: float = 0.27
    saving: float = 0.27
    half: float = 0.5
    dear: float = 0.2
    long: float = 10.0
    saves: int = 2


@rule("SLO005 periodic-pauses", "metrics checkpoints progress", confidence="medium", cause="periodic_pauses")
def periodic_pauses(run: Run, cfg: Paused) -> Findings:
    """Find the clock that lost the largest share of its time to saves, or to pauses with a period."""
    every = pauses_of(run)
    saving = [(c, p) for c, p in every if p.saving >= cfg.saving or (p.saving >= cfg.dear and p.steps >= cfg.long)]
    saving = [(c, p) for c, p in saving if len(p.saves) >= cfg.saves]
    if saving:
        yield _at_saves(*max(saving, key=lambda pair: pair[1].saving), cfg)
        return
    periodic = [pair for pair in every if pair[1].combs and pair[1].share >= cfg.least]
    if periodic:
        yield _periodic(*max(periodic, key=lambda pair: pair[1].share), cfg)


def _at_saves(clock: Clock, found: Pauses, cfg: Paused) -> Finding:
    rows = [clock.row(int(i)) for i in found.saves[:3]]
    share = found.saving
    return periodic_pauses.finding(
        f"saving checkpoints takes {100 * share:.0f} % of the time ({len(found.saves)} saves)",
        "the steps at which a checkpoint was saved take that much longer than those around them",
        proof(rows[0], *rows[1:]),
        severity="error" if share >= cfg.half else "warning",
        numbers={"share": share, "saves": len(found.saves)},
    )


def _periodic(clock: Clock, found: Pauses, cfg: Paused) -> Finding:
    rows = [clock.row(int(i)) for i in found.records[:3]]
    unknown = found.share - min(found.share, found.saving + found.evaluating)
    teeth: dict[int, int] = {}
    for comb in found.combs:  # saves and evaluations of one period come at other steps of it
        teeth[comb.period] = teeth.get(comb.period, 0) + comb.teeth
    said = ", ".join(f"every {period} steps ({count} times)" for period, count in teeth.items())
    return periodic_pauses.finding(
        f"pauses {said} take {100 * found.share:.0f} % of the time",
        f"{len(found.records)} records stand out; saves take {100 * found.saving:.0f} % of the time "
        f"and evaluations {100 * found.evaluating:.0f} %",
        proof(rows[0], *rows[1:]),
        severity="warning" if unknown >= cfg.unknown else "info",
        causal="context",
        numbers={
            "share": found.share,
            "period_steps": found.combs[0].period,
            "pauses": len(found.records),
            "unknown": unknown,
        },
    )


class Coarse(Struct, frozen=True):
    """Thresholds of SLO031: the printing unit over the median, and the fewest records."""

    unit: float = COARSE
    records: int = 20


@rule(
    "SLO031 step-times-too-coarse",
    "metrics checkpoints progress",
    severity="info",
    confidence="low",
    cause="coarse_times",
    causal="context",
)
def step_times_too_coarse(run: Run, cfg: Coarse) -> Findings:
    """Tell the first clock that says nothing about slowdowns, where no finer one of its source does."""
    for one in paced(run):
        unit = coarseness(one.steady)
        if one.change is None and unit > cfg.unit and len(one.steady) >= cfg.records:
            yield _too_coarse_finding(one, unit)
            return


def _too_coarse_finding(one: Paced, unit: float) -> Finding:
    share = 100 * unit
    return step_times_too_coarse.finding(
        f"{one.clock.name} is rounded to {share:.0f} % of a step time, so smaller slowdowns are invisible",
        "no change was found, which says nothing about changes below the printing unit"
        + "".join(f"; {note}" for note in one.clock.notes),
        proof(one.row(0)),
        Onset(),
        numbers={"resolution": unit, "records": len(one.steady)},
    )
