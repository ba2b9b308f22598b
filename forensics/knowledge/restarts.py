"""Whether a failure comes again after a restart, by the nature of its cause, from `advice/restarts.jsonl`.

A row has an `id`, `decision` (`as_is`, `after_change`, `elsewhere` or `stop`), `says` (why, as half a sentence),
`source`, and conditions, all of which must hold: `nature` (of the cause), `stuck` (so many attempts in a row got no
further), and `again` (an earlier attempt failed at the same file, data position or device). The first row that fits
decides. The nature of a cause is in its own row, else in that of its shape in `advice/shapes.jsonl`:

`program` its own error, `numbers` training went wrong, `capacity` it needs more than there is, `checkpoint` a file that
does not load, `machine` a host, device or link, `passing` somebody did not answer in time, `outside` somebody ended it,
`pace`, `score`, `moving` an unknown error that came elsewhere before, and `unclear` where nothing tells.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from forensics.knowledge._rows import Row, bare_rows, rows_of
from forensics.knowledge.causes import causes

Decided = Literal["as_is", "after_change", "elsewhere", "stop"]


class RestartRow(Row, frozen=True):
    """One row; `stuck` is 1, `again` and `change` are false where it does not ask."""

    id: str
    decision: Decided
    says: str
    source: str
    nature: frozenset[str]
    stuck: int = 1
    again: bool = False
    change: bool = False

    def fits(self, nature: str, stuck: int, *, again: bool, change: bool) -> bool:
        """Whether all of its conditions hold."""
        asked = (again or not self.again) and (change or not self.change)
        return asked and nature in self.nature and stuck >= self.stuck


def restarts() -> tuple[RestartRow, ...]:
    """Every row, in the order in which they decide."""
    return rows_of("advice/restarts.jsonl", RestartRow)


def tries_left(nature: str, stuck: int) -> int:
    """How many more attempts may get no further before a row for stuck ones decides; 0 where no row asks that."""
    limits = [row.stuck for row in restarts() if nature in row.nature and row.stuck > 1]
    return max(0, min(limits, default=stuck) - stuck)


def nature_of(cause: str, shape: str) -> str:
    """Give the nature of a cause, or of its shape; empty for a shape that nobody described."""
    known = causes().get(cause)
    return (known.nature if known is not None else "") or _natures().get(shape, "")


@cache
def _natures() -> dict[str, str]:
    return {row["shape"]: row["nature"] for row in bare_rows("advice/shapes.jsonl")}
