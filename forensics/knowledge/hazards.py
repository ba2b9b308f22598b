"""Settings that make a failure of one shape likelier or harder to see, from `hazards.jsonl`.

A row has `hazard` (its name), `shape`, `setting` (a pattern of the last part of a key), `values` (those that are
hazardous), `says` (what the setting does), `advice` (how to set it) and `source`.
"""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from forensics.knowledge._rows import frozen, rows_of


class Hazard(Struct, frozen=True):
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


@cache
def hazards_of(shape: str) -> tuple[Hazard, ...]:
    """Give the hazardous settings of a shape, in the order of the table."""
    return tuple(one for row in rows_of("hazards.jsonl") if (one := Hazard(**frozen(row))).shape == shape)
