"""Several runs at once as plain values for JSON: by shape, and by failure."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model import Report
from forensics.report import _many
from forensics.report.payload import Payload
from forensics.report.phrases import utc


def fleet_payload(reports: Sequence[Report]) -> Payload:
    """Give the counts by shape and the failures; `runs` of a failure are places in the document's `runs`, 0-based."""
    return {
        "shapes": [
            {
                "outcome": row.outcome.value,
                "shape": None if row.shape == _many.NOTHING else row.shape,
                "runs": row.runs,
                "failures": row.failures,
                **_seen(row.seen),
            }
            for row in _many.by_shape(reports)
        ],
        "failures": [_failure(group) for group in _many.groups(reports) if group.seen.runs],
    }


def _failure(group: _many.Group) -> Payload:
    verdict = group.lead.verdict
    return {
        "fingerprint": group.key,
        "shape": verdict.shape.value if verdict.shape else None,
        "headline": verdict.headline,
        "runs": list(group.places),
        **_seen(group.seen),
    }


def _seen(seen: _many.Seen) -> Payload:
    return {"first_seen": utc(seen.first_ns), "last_seen": utc(seen.last_ns), "undated": seen.undated}
