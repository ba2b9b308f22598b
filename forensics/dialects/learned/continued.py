"""Second lines of a record: a handler that wraps at the width of a terminal, or a logger that prints a record in two.

Rich's handler, 80 columns wide where no terminal is, prints `Step 7: loss=3.6, grad_norm=0.9,` and, indented below it,
`lr=4.8e-03, step_time=0.051s`. The second line names no step; it has that of the line above.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.dialects.learned.masking import Slot

#: Share of the lines of a group that stand right below a record: the first of a sample may have lost its own.
_BELOW = 0.9


def continues(places: Sequence[int], rows: Sequence[tuple[Slot, ...]], records: frozenset[int]) -> bool:
    """Whether lines carry on the records above them: indented, each right below one, and no number without a name.

    `places` are the lines' own, `records` those of lines that count steps and print a metric.
    """
    indented = all(row[0].before[:1].isspace() for row in rows)
    below = sum(place - 1 in records for place in places)
    return indented and below >= _BELOW * len(places) and all(slot.key or slot.over for row in rows for slot in row)
