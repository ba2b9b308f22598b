"""The verdict for programs: `forensics.report/1`, whose fields may be added to and are never renamed.

NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity", never null. The schema is shipped beside this
module (`_schema/report-1.schema.json`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forensics.io.tolerant_json import dumps
from forensics.model import Report
from forensics.registry import renderer
from forensics.report._fleet_payload import fleet_payload
from forensics.report.payload import document


def encoded(payload: Mapping[str, object]) -> str:
    """Write a document as JSON text without its last newline."""
    return dumps(payload).decode("utf-8").rstrip("\n")


def render_many(reports: Sequence[Report]) -> Iterator[str]:
    """Write all runs as one document; `fleet` says which of them failed the same way, and when."""
    yield encoded(document(reports) | ({"fleet": fleet_payload(reports)} if len(reports) > 1 else {}))


@renderer("json", many=render_many)
def render(report: Report) -> Iterator[str]:
    """Write the report as one JSON document."""
    yield encoded(document([report]))
