"""Settings that make a failure of one shape likelier or harder to see, from `failures/hazards.jsonl`.

A row has `hazard` (its name), `shape`, `setting` (a pattern of the last part of a key), `values` (those that are
hazardous), `says` (what the setting does), `advice` (how to set it) and `source`.
"""

from __future__ import annotations

from forensics.knowledge._rows import Row, rows_of


class Hazard(Row, frozen=True):
    """One row; the fields are those of the table."""

    hazard: str
    shape: str
    setting: str
    values: tuple[str, ...]
    says: str
    advice: str
    source: str

    @property
    def keys(self) -> str:
        """The pattern of the whole key."""
        return rf"(?i)(?:^|\.){self.setting}$"


def hazards_of(shape: str) -> tuple[Hazard, ...]:
    """Give the hazardous settings of a shape, in the order of the table."""
    return tuple(row for row in rows_of("failures/hazards.jsonl", Hazard) if row.shape == shape)
