"""What the rules on step times share: the slowdown of every clock, and the parts of a finding about it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.case.evidence import metric_evidence
from forensics.model import Confidence, Evidence, EvidenceRole, Onset
from forensics.signals.pace_change import Change, change_of
from forensics.signals.pace_clocks import Clock, best_clocks
from forensics.signals.pace_steady import FEWEST, Steady, steady
from forensics.store.run import Run

#: A printing unit above half the smallest effect hides it.
COARSE = 0.025
#: A level needs this many records on either side of a change to be told from the course of a start or an end.
SIDE = 20
_SETTLING = 0.03


@dataclass(frozen=True, slots=True)
class Paced:
    """One clock of a run made steady, and how it changed, if it did."""

    clock: Clock
    steady: Steady
    change: Change | None

    def row(self, index: int) -> dict[str, object]:
        """Give the metric row of a steady record."""
        return self.clock.rows.row(int(self.steady.kept[index]), named=True)

    def at(self, index: int) -> int:
        """Give the step of a steady record."""
        return int(self.steady.steps[index])


def paced(run: Run) -> tuple[Paced, ...]:
    """Give every clock of a run that is long enough, the best of each source, attempt and rank."""
    return run.derived(_paced)


def _paced(run: Run) -> tuple[Paced, ...]:
    found: list[Paced] = []
    for clock in best_clocks(run, fewest=FEWEST, coarsest=COARSE):
        calm = clock.calm()
        series = steady(calm.seconds, calm.steps, calm.quantum)
        if series is not None:
            found.append(Paced(calm, series, change_of(series)))
    return tuple(found)


def more_work(run: Run, one: Paced, change: Change) -> bool:
    """Whether the same source prints tokens or samples per second that did not fall: then steps only hold more."""
    if one.clock.unit != "step":
        return False
    onset, before = one.at(change.first), one.at(0)
    for clock in run.derived(_rates):
        if (clock.source, clock.attempt, clock.rank) != (one.clock.source, one.clock.attempt, one.clock.rank):
            continue
        early = clock.rows.filter((pl.col("at") < onset) & (pl.col("at") >= before))["pace"].median()
        late = clock.rows.filter(pl.col("at") >= onset)["pace"].median()
        if isinstance(early, float) and isinstance(late, float):
            return late < early * change.ratio**0.5
    return False


def _rates(run: Run) -> tuple[Clock, ...]:
    from forensics.signals.pace_clocks import clocks  # noqa: PLC0415 - kept beside its one use

    return tuple(c for c in clocks(run) if c.unit in {"token", "sample", "token/device"})


def settled(one: Paced, change: Change) -> bool:
    """Whether there is a level before and after: enough records on both sides, past the first few percent."""
    n = len(one.steady)
    return change.first >= max(SIDE, _SETTLING * n) and change.end - change.first >= SIDE


def evidence_of(one: Paced, change: Change) -> tuple[Evidence, ...]:
    """Give the first slow record, the last good one, and the last of the slow ones."""
    last = min(change.end, len(one.steady)) - 1
    return (
        metric_evidence(one.row(change.first)),
        metric_evidence(one.row(max(0, change.first - 1)), EvidenceRole.RELATED),
        metric_evidence(one.row(last), EvidenceRole.RELATED),
    )


def onset_of(one: Paced, change: Change) -> Onset:
    """Give the first slow step, and the step before it as the last good one."""
    row = one.row(change.first)
    t_ns = row["t_ns"]
    good = one.at(change.first - 1) if change.first else None
    return Onset(
        step=one.at(change.first), t_ns=t_ns if isinstance(t_ns, int) else None, rank=one.clock.rank, step_lo=good
    )


def confidence_of(one: Paced, change: Change) -> Confidence:
    """High only where the change is confirmed, far from noise and long on both sides."""
    if not change.confirmed or one.steady.multimodal or one.steady.resolution > COARSE:
        return Confidence.LOW
    long = min(change.first, change.end - change.first) >= 50
    return Confidence.HIGH if change.z >= 8 and long else Confidence.MEDIUM


def measured(one: Paced, change: Change) -> str:
    """Say how many records there are, how noisy they are, and what was set aside."""
    series = one.steady
    pauses = ", ".join(f"every {p.period} steps" for p in series.pauses)
    aside = f"{series.warmup} warm-up records and {int(series.paused.sum())} pauses set aside"
    return (
        f"{change.first} records before and {change.end - change.first} after, noise {100 * series.spikes.sd:.1f} %, "
        f"{change.z:.0f} deviations; {aside}" + (f" (pauses {pauses})" if pauses else "")
    )
