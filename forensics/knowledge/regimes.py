"""Regimes: what kind of fine-tuning a run is, by its settings or by what it logs, from `training/regimes.jsonl`.

A row has `sign` (its id), `regime` (rl, preference, fine-tuning: supervised, on text), `key` and `value` (patterns over
the end of a setting's key and over its whole value, in lower case), or `metric` (a pattern over a printed name), and
`source`. The first row that fits holds.
"""

from __future__ import annotations

from forensics.knowledge._rows import Row, rows_of


class Sign(Row, frozen=True):
    """One row: a setting with its value, or a metric, that tells the regime."""

    sign: str
    regime: str
    source: str
    key: str = ""
    value: str = ""
    metric: str = ""


def signs() -> tuple[Sign, ...]:
    """Every row, in the order in which they are asked."""
    return rows_of("training/regimes.jsonl", Sign)
