"""The verdict for programs: `forensics.report/1`, whose fields may be added to and are never renamed.

NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", never null. The schema is shipped beside this
module (`_schema/report-1.schema.json`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forensics.io.tolerant_json import dumps
from forensics.model import Report
from forensics.registry import renderer
from forensics.report import _many
from forensics.report.payload import Payload, document, report_payload
from forensics.report.phrases import utc

_SEVERAL = 2


def encoded(payload: Mapping[str, object]) -> str:
    """Write a document as JSON text without its last newline."""
    return dumps(payload).decode("utf-8").rstrip("\n")


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write all runs as one document; `fleet` groups those that failed the same way, with their times.

    Run by run: as plain values, runs take six times the memory of their text.
    """
    if len(reports) < _SEVERAL:
        yield encoded(document(reports))
        return
    around = encoded(document(()) | {"fleet": fleet_payload(reports)})
    before, key, after = around.partition('"runs": [')
    yield before + key
    for left, report in enumerate(reports, 1 - len(reports)):
        yield "    " + encoded(report_payload(report)).replace("\n", "\n    ") + ("," if left else "")
    yield "  " + after


@renderer("json", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write the report as one JSON document."""
    yield encoded(document([report]))


# Several runs at once as plain values for JSON: by shape, and by failure.


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
