"""What the rules on reinforcement learning say: one finding of one hit, and whether the reward rose meanwhile."""

from __future__ import annotations

from forensics.analyses.rl.ranges import Hit
from forensics.model import Causal, Confidence, Evidence, Finding, Severity, Shape
from forensics.rules.kit import Row, at_step, number, onset_at, proof
from forensics.values import replace


def finding_of(hit: Hit, severity: Severity, *others: Evidence | Row, cause: str, note: str = "") -> Finding:
    """Make the finding of a hit; `note` is added to what proves it, `others` to the evidence."""
    row, end = hit.row, hit.rows.height - 1
    start, before, last = (hit.rows.row(max(0, at), named=True) for at in (hit.onset, hit.onset - 1, end))
    healthy = f"; healthy is {row.healthy}" if row.healthy else ""
    return Finding(
        rule=row.rule,
        shape=Shape.LEARNING,
        severity=min(severity, Severity.WARNING, key=lambda one: one.rank) if hit.few else severity,
        confidence=Confidence.LOW if hit.few else Confidence.MEDIUM,
        title=f"{hit.series.raw_name} {_moved(hit)} from {at_step(start['at'], start.get('epoch'))} on: {row.meaning}",
        because=f"{_proof(hit)}{healthy}{'; ' + note if note else ''} ({row.source})",
        evidence=proof(start, before if hit.onset else None, last if hit.onset != end else None, *others),
        onset=onset_at(start, before["at"] if hit.onset else None),
        cause=cause,
        causal=Causal.ROOT,
        numbers={"first": hit.first, "last": hit.last, "share": round(hit.share, 4), "records": hit.rows.height},
    )


def outside_of(hit: Hit, *, cause: str) -> Finding:
    """Make the finding of a level outside of its healthy range that does not reach its red flag."""
    return replace(finding_of(hit, Severity.WARNING, cause=cause), confidence=Confidence.LOW)


def _moved(hit: Hit) -> str:
    if hit.row.test in {"rise", "fall"}:
        return f"goes from {number(hit.first)} to {number(hit.last)}"
    if hit.row.test == "flat":
        return f"is {number(hit.last)} and was {number(hit.first)}"
    if hit.row.test == "spread":
        return f"swings around {number(hit.last)}"
    if hit.row.test == "often":
        return f"is {number(hit.rows['value'][hit.onset])} again and again"
    return f"is {number(hit.last)}" if hit.onset == 0 else f"is {number(hit.last)} after {number(hit.first)}"


def _proof(hit: Hit) -> str:
    row, share = hit.row, f"{hit.share:.0%}"
    if row.test in {"rise", "fall"}:
        return f"the trend over the last half has Kendall's tau {hit.share:.2f}"
    if row.test == "flat":
        return "the medians of the last and the first fifth differ by no more than their noise"
    if row.test == "spread":
        return "the robust deviation of the last half is more than twice its median"
    if row.test == "often":
        return f"{share} of the last half of the records are {row.op} {row.red:g}"
    bound = f"{row.op} {row.red:g}" if hit.red and row.red is not None else "outside the healthy range"
    if hit.few:
        return f"each of the last {hit.rows.height - hit.onset} values is, and the log holds {hit.rows.height}"
    what = "values" if row.test in {"all", "share"} else "running medians of 10"
    return f"{share} of the last 20 {what} are {bound}"
