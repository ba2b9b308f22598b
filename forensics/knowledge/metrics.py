"""What metrics are to a search for NaN and infinity, from `training/metrics.jsonl`; the first row that fits decides.

A row has `names`, a pattern over the whole canonical name, and may have `but`, another that the name must not fit;
`role`: `loss`, `grad_norm`, `eval` (held-out loss) or `part` (of the loss); `tells`, facts that the program reads of
such metrics: `bad_updates` (they count updates, or the share of them, that were not finite), `beside_loss` (trainers
print them beside a loss that they leave out where it is no positive number), `with_loss` (only records of training hold
them), `highest_token_id` and `lowest_token_id` (of a batch); and `source`.
"""

from __future__ import annotations

from functools import cache

from forensics.knowledge._rows import Row, rows_of


class Metric(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    names: str
    source: str
    but: str = ""
    role: str = ""
    tells: tuple[str, ...] = ()


@cache
def with_role() -> tuple[Metric, ...]:
    """Give the rows that have a role, in their order."""
    return tuple(row for row in rows_of("training/metrics.jsonl", Metric) if row.role)


@cache
def telling(fact: str) -> str:
    """Give a pattern over the whole name of the metrics that tell a fact; raises `KeyError` when no row tells it."""
    found = [row.names for row in rows_of("training/metrics.jsonl", Metric) if fact in row.tells]
    if not found:
        raise KeyError(fact)
    return f"^(?:{'|'.join(found)})$"
