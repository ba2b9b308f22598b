"""Ranges: where a quantity is healthy, and from where it is a red flag, in each regime, from `training/ranges.jsonl`.

A row has `row` (its name), `quantity`, `regime` (rl; fine-tuning, of it adapter or full; first record; or any), `rule`
(who judges it), `meaning` (what a value outside means) and `source`. `lo` and `hi` bound the healthy range; `op` with
`red` is the red flag, which counts from `from_step` on. `test` is how a series is judged: `median` (the running median
of 10 records is beyond the bound in 80 % of the last 20), `all` (each of the last 20 is), `share` (more than half of
them are), `often` (more than the `share` of the last half is, three times at least), `spread` (the robust relative
deviation of the last half is), `rise` and `fall` (a proven trend of the last half in the wrong direction), `flat` (the
last fifth is not above the first). `unless` is a trend of the last half that excuses a level.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf

from forensics.knowledge._rows import Row, rows_of


class Range(Row, frozen=True):
    """One row; a bound that it does not have is infinite, and a red flag None."""

    row: str
    quantity: str
    regime: str
    rule: str
    meaning: str
    source: str
    lo: float = -inf
    hi: float = inf
    op: str = ""
    red: float | None = None
    from_step: int = 0
    test: str = ""
    share: float = 0.0
    unless: str = ""

    @property
    def healthy(self) -> str:
        """The healthy range in words; empty when the row has none."""
        if self.lo == -inf:
            return "" if self.hi == inf else f"at most {self.hi:g}"
        return f"at least {self.lo:g}" if self.hi == inf else f"{self.lo:g} to {self.hi:g}"


@cache
def ranges() -> Mapping[str, Range]:
    """Every row by its name, in the order of the table."""
    return {row.row: row for row in rows_of("training/ranges.jsonl", Range)}


def range_of(row: str) -> Range:
    """One row by its name; raises `KeyError` for a row that the table does not have."""
    return ranges()[row]
