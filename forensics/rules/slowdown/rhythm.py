"""What step times repeat: two levels in turn, pauses with a period, and a unit that is too coarse."""

from __future__ import annotations

from forensics.analyses.pace.account import COARSE, paced, pauses_of
from forensics.analyses.pace.steady import coarseness
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, remark, rule, times
from forensics.stats.changes import modes_of


class TwoTimes(Struct, frozen=True):
    """Thresholds of SLO004: the share of slow steps must be between `least` and `most`, of `records` at least."""

    least: float = 0.1
    most: float = 0.9
    records: int = 50


@remark("SLO004 two-step-times", "metrics checkpoints progress spans", confidence="medium", cause="two_step_times")
def two_step_times(run: Run, cfg: TwoTimes) -> Findings:
    """Find the first clock with two clear modes over the whole run."""
    for one in paced(run):
        found = modes_of(one.steady.logs) if len(one.steady) >= cfg.records and one.change is None else None
        if found is None or not cfg.least <= found.slow <= cfg.most:
            continue
        slow = one.steady.logs > found.cut
        if int((slow[1:] != slow[:-1]).sum()) < 0.5 * 2 * found.slow * (1 - found.slow) * len(slow):
            continue  # fast and slow steps come one after the other, and not in turn
        first, fast = int(slow.argmax()), int((~slow).argmax())
        high, low = (float(one.steady.seconds[part].mean()) for part in (slow, ~slow))
        yield two_step_times.finding(
            f"a {one.clock.unit} takes {low:.3g} s or {high:.3g} s: {100 * found.slow:.0f} % are slow",
            "step times alternate between two levels more than four deviations apart for the whole run",
            proof(one.row(first), one.row(fast)),
            Onset(step=one.at(first), rank=one.clock.rank),
            numbers={"slow_share": found.slow, "fast_s": low, "slow_s": high},
        )
        return


class Paused(Struct, frozen=True):
    """Thresholds of SLO005, as shares of the whole time.

    `unknown` is for pauses that neither a save nor an evaluation explains, and `costly` for such that cost `lost_s`
    seconds in all: of 17 runs that are kept, healthy ones spend up to 17 % on them, others from 30 % on, and a run of
    minutes loses little by either. `evaluating` is for evaluations: healthy jobs spent up to 17 % of their time on
    them, one whose evaluations grew 53 %. `saving` is for saves: healthy jobs that saved at every twentieth step spent
    18 to 26 % of their time on it, jobs with slow storage from 31 % on. Those of the healthy ones were as long as 4 to
    7 steps; `dear` is a share for saves as long as `long` steps or more. Saves that cost fewer than `seconds` in all
    are no slow storage: a healthy job of 7 s on an H200 spent 1.3 s on three, and slow storage cost jobs of 8 s 2.6 s
    and more.
    """

    least: float = 0.05
    unknown: float = 0.27
    costly: float = 0.2
    lost_s: float = 60.0
    saving: float = 0.27
    evaluating: float = 0.4
    half: float = 0.5
    dear: float = 0.2
    long: float = 10.0
    saves: int = 2
    seconds: float = 2.0


@rule("SLO005 periodic-pauses", "metrics checkpoints progress spans", confidence="medium", cause="periodic_pauses")
def periodic_pauses(run: Run, cfg: Paused) -> Findings:
    """Find the clock that lost the largest share of its time to saves, or to pauses with a period."""
    every = pauses_of(run)
    saving = [(c, p) for c, p in every if p.saving >= cfg.saving or (p.saving >= cfg.dear and p.steps >= cfg.long)]
    saving = [(c, p) for c, p in saving if len(p.saves) >= cfg.saves and p.saving_s >= cfg.seconds]
    if saving:
        clock, found = max(saving, key=lambda pair: pair[1].saving)
        yield periodic_pauses.finding(
            f"saving checkpoints takes {100 * found.saving:.0f} % of the time ({len(found.saves)} saves)",
            "the steps at which a checkpoint was saved take that much longer than those around them",
            proof(*(clock.row(int(i)) for i in found.saves[:3])),
            severity="error" if found.saving >= cfg.half else "warning",
            numbers={"share": found.saving, "saves": len(found.saves)},
        )
        return
    periodic = [pair for pair in every if pair[1].combs and pair[1].share >= cfg.least]
    if not periodic:
        return
    clock, found = max(periodic, key=lambda pair: pair[1].share)
    unknown = found.share - min(found.share, found.saving + found.evaluating)
    teeth: dict[int, int] = {}
    for comb in found.combs:  # saves and evaluations of one period come at other steps of it
        teeth[comb.period] = teeth.get(comb.period, 0) + comb.teeth
    evaluates = found.evaluating >= cfg.evaluating
    unexplained = unknown >= (cfg.costly if unknown / found.share * found.share_s >= cfg.lost_s else cfg.unknown)
    said = ", ".join(f"every {period} steps ({times(count)})" for period, count in teeth.items())
    yield periodic_pauses.finding(
        f"evaluations take {100 * found.evaluating:.0f} % of the time"
        if evaluates
        else f"pauses {said} take {100 * found.share:.0f} % of the time",
        f"{len(found.records)} records stand out; saves take {100 * found.saving:.0f} % of the time "
        f"and evaluations {100 * found.evaluating:.0f} %",
        proof(*(clock.row(int(i)) for i in found.records[:3])),
        severity="warning" if evaluates or unexplained else "info",
        cause="slow_evaluations" if evaluates else "periodic_pauses",
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


@remark("SLO031 step-times-too-coarse", "metrics checkpoints progress spans", confidence="low", cause="coarse_times")
def step_times_too_coarse(run: Run, cfg: Coarse) -> Findings:
    """Tell the first clock that says nothing about slowdowns, where no finer one of its source does."""
    for one in paced(run):
        unit = coarseness(one.steady)
        if one.change is not None or unit <= cfg.unit or len(one.steady) < cfg.records:
            continue
        yield step_times_too_coarse.finding(
            f"{one.clock.name} is rounded to {100 * unit:.0f} % of a step time, so smaller slowdowns are invisible",
            "no change was found, which says nothing about changes below the printing unit"
            + "".join(f"; {note}" for note in one.clock.notes),
            proof(one.row(0)),
            Onset(),
            numbers={"resolution": unit, "records": len(one.steady)},
        )
        return
