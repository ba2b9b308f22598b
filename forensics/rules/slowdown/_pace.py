"""What the rules on step times share: the parts of a finding about one change of one clock."""

from __future__ import annotations

from forensics.analyses.pace.account import COARSE, Gravity, Paced, tier_of
from forensics.analyses.pace.change import Change
from forensics.case.evidence import metric_evidence
from forensics.model import Confidence, Evidence, EvidenceRole, Onset, Severity

#: A rate from here on is printed without decimals.
_WHOLE = 1000


def severity_of(one: Paced, change: Change, cfg: Gravity) -> Severity:
    """Give the severity of a loss of time: grave ones are errors, mild ones and what is not sure are warnings."""
    if (tier := tier_of(one, change, cfg)) == "grave" and confidence_of(one, change) is not Confidence.LOW:
        return Severity.ERROR
    return Severity.INFO if tier == "note" else Severity.WARNING


def slower(one: Paced, change: Change) -> str:
    """Say how fast the run is and was, in the unit in which people think of it: seconds of a step, else a rate."""
    before, after, unit = change.before, change.before * change.ratio, one.clock.unit
    if unit == "step":
        return f"a step takes {after:.3g} s instead of {before:.3g} s ({change.ratio:.2f} times as long)"
    rates = (f"{rate:.4g}" if (rate := 1 / seconds) < _WHOLE else f"{rate:,.0f}" for seconds in (before, after))
    name = str(one.row(change.first)["raw_name"]) if unit == "flop" else f"{unit}s per second".replace("/", "s per ", 1)
    return f"{name} fell from {' to '.join(rates)} (steps take {change.ratio:.2f} times as long)"


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
    """Say what the change cost, how many records there are, how noisy they are, and what was set aside."""
    series, paused = one.steady, int(one.steady.paused.sum())
    pauses = ", ".join(f"every {p.period} steps" for p in series.pauses)
    counted = ((series.warmup, "warm-up record"), (paused, "pause"))
    aside = " and ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in counted if count)
    return (
        f"{100 * one.lost(change):.0f} % of the time was lost; {change.first} records before and "
        f"{change.end - change.first} after, noise {100 * series.spikes.sd:.1f} %, {change.z:.0f} deviations"
        + (f"; {aside} set aside" if aside else "")
        + (f" (pauses {pauses})" if pauses else "")
    )
