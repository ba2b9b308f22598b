"""What a rule is written with: its declaration and thresholds, what proves it, where it began, and its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Unpack

from msgspec import Struct

from forensics.case.evidence import (
    Row,
    at_step,
    checkpoint_evidence,
    event_evidence,
    fact_evidence,
    metric_evidence,
    number,
    times,
)
from forensics.declared import Declared
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import Rule, rule
from forensics.store.run import Run
from forensics.values import replace

__all__ = [
    "Causal",
    "Confidence",
    "Evidence",
    "EvidenceRole",
    "Finding",
    "Findings",
    "Locator",
    "Onset",
    "Row",
    "Run",
    "Severity",
    "Shape",
    "Struct",
    "at_step",
    "checkpoint_evidence",
    "event_evidence",
    "fact_evidence",
    "metric_evidence",
    "number",
    "onset_at",
    "proof",
    "remark",
    "rule",
    "times",
]

Findings = Iterator[Finding]


def remark(
    name: str, needs: str, *, about: Callable[[Any], object] | None = None, **usual: Unpack[Declared]
) -> Callable[[Callable[..., Findings]], Rule]:
    """Make a rule whose findings are notes beside a failure, and decide nothing unless they say so."""
    fields: Declared = {"severity": "info", "causal": "context", **usual}
    return rule(name, needs, about=about, **fields)


def proof(first: Evidence | Row, *more: Evidence | Row | None) -> tuple[Evidence, ...]:
    """Give the evidence of a finding: the first place proves it, the others are related; rows are those of metrics."""
    return (
        replace(_evidence(first), role=EvidenceRole.PRIMARY),
        *(_related(_evidence(place)) for place in more if place is not None),
    )


def onset_at(row: Row, step_lo: int | None = None) -> Onset:
    """Give the place of a row of metrics, events or spans as an onset; `step_lo` is the last step known to be good."""
    step = row["at"] if "at" in row else row["step"]
    return Onset(step, row["t_ns"] if "t_ns" in row else row["start_ns"], row["rank"], step_lo)


def _evidence(place: Evidence | Row) -> Evidence:
    return place if isinstance(place, Evidence) else metric_evidence(place)


def _related(evidence: Evidence) -> Evidence:
    return replace(evidence, role=EvidenceRole.RELATED) if evidence.role is EvidenceRole.PRIMARY else evidence
