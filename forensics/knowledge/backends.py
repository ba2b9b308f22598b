"""What a run computed on, by the signs that each kind of device leaves, from `machines/backends.jsonl`.

A row has `backend` and patterns of what only such a device leaves: `lines` (ids of error lines), `metrics` (names as
printed), `values` (of settings that name a device or a communication library). The first row that fits is believed.
"""

from __future__ import annotations

from forensics.knowledge._rows import Row, rows_of


class Backend(Row, frozen=True):
    """One kind of device; an empty pattern fits nothing."""

    backend: str
    lines: str = ""
    metrics: str = ""
    values: str = ""


def backends() -> tuple[Backend, ...]:
    """Every kind of device, the most telling first."""
    return rows_of("machines/backends.jsonl", Backend)
