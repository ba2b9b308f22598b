"""What the rules on reinforcement learning say: one finding of one hit, and whether the reward rose meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.analyses.rl.ranges import Hit
from forensics.case.evidence import Row, at_step, metric_evidence, number
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.values import replace


def finding_of(hit: Hit, severity: Severity, *, cause: str, note: str = "", others: Iterable[Evidence] = ()) -> Finding:
    """Make the finding of a hit; `note` is added to what proves it, `others` to the evidence."""
    row, start = hit.row, hit.rows.row(hit.onset, named=True)
    before = hit.rows.row(hit.onset - 1, named=True) if hit.onset else None
    name = hit.series.raw_name
    healthy = f"; healthy is {row.healthy}" if row.healthy else ""
    return Finding(
        rule=row.rule,
        shape=Shape.LEARNING,
        severity=min(severity, Severity.WARNING, key=lambda one: one.rank) if hit.few else severity,
        confidence=Confidence.LOW if hit.few else Confidence.MEDIUM,
        title=f"{name} {_moved(hit)} from {at_step(start['at'])} on: {row.meaning}",
        because=f"{_proof(hit)}{healthy}{'; ' + note if note else ''} ({row.source})",
        evidence=(*_evidence(hit), *others),
        onset=Onset(
            step=start["at"],
            t_ns=start["t_ns"],
            rank=start["rank"],
            step_lo=before["at"] if before is not None else None,
        ),
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


def _evidence(hit: Hit) -> tuple[Evidence, ...]:
    places = [(hit.onset, EvidenceRole.PRIMARY)]
    if hit.onset:
        places.append((hit.onset - 1, EvidenceRole.RELATED))
    if hit.onset != hit.rows.height - 1:
        places.append((hit.rows.height - 1, EvidenceRole.RELATED))
    return tuple(evidence_at(hit.rows.row(i, named=True), role) for i, role in places)


def evidence_at(row: Row, role: EvidenceRole = EvidenceRole.RELATED) -> Evidence:
    """Evidence of one row of a series."""
    return metric_evidence(row, role)
