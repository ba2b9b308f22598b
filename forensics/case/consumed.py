"""What a run logged of the data that it consumed, source by source: counts of tokens or samples, or shares drawn.

Metrics such as OLMo-core's `data_mixture/tokens/source=web`, `data/web/tokens_seen` or `consumed_tokens/web`, and the
shares that Megatron prints when it builds a blend (`dataset 0, input: 0.3, achieved: 0.2999`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.series import keys_of, metric_rows
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.store.run import Run, derived

_MOST = 200


class Consumed(Struct, frozen=True):
    """One source of data: its share of all that was consumed, out of 1, and the last row that says it."""

    label: str
    share: float
    row: Mapping[str, Any]
    table: str


@derived
def consumed(run: Run) -> dict[str, Consumed]:
    """Shares of what was consumed by source; empty where fewer than two sources were counted."""
    return _counted(run) or _achieved(run)


def source_of(name: str) -> str | None:
    """The source of data that a metric counts; None for any other metric."""
    found = next((match for pattern in _names() if (match := pattern.match(name))), None)
    return None if found is None or stands_for("no_data_source", found["name"]) else found["name"].lower()


@cache
def _names() -> tuple[re.Pattern[str], ...]:
    """Two forms: what is counted is before the name of the source, or behind it."""
    head, what = f"(?:{words_for('group_of_data')})", f"(?:{words_for('unit_of_data')})"
    return (
        re.compile(
            rf"(?i)^(?:{head}[/._])*(?:(?:total_|cumulative_|num_|n_)?{what}"
            rf"(?:_(?:seen|consumed|per_(?:source|domain|dataset)))?|consumed(?:_{what})?|(?:seen|consumed)_{what})"
            r"[/.](?:(?:source|domain|dataset|name)[=:_/])?(?P<name>[\w:+-]{1,80})$"
        ),
        re.compile(
            rf"(?i)^(?:{head}[/._])+(?P<name>[\w:+-]{{1,80}})[/.]"
            rf"(?:(?:num_|n_|total_|cumulative_)?{what}(?:_(?:seen|consumed))?|(?:seen|consumed)(?:_{what})?)$"
        ),
    )


def _counted(run: Run) -> dict[str, Consumed]:
    printed = pl.col("raw_name").fill_null(pl.col("name"))
    meant = [name for name in keys_of(run).select(printed.unique()).to_series() if source_of(name) is not None]
    finite = metric_rows(run, printed.is_in(meant)).filter(pl.col("value_class") == "finite").with_columns(raw=printed)
    names = finite.select(pl.col("raw").unique()).collect().to_series().to_list() if meant else []
    labels = {name: label for name in sorted(names) if (label := source_of(name)) is not None}
    if not 2 <= len(labels) <= _MOST:
        return {}
    own = finite.filter(pl.col("raw").is_in(list(labels)))
    last = own.sort("source", "seq", maintain_order=True).collect().unique("raw", keep="last", maintain_order=True)
    return _shares({labels[row["raw"]]: row for row in last.iter_rows(named=True)}, "metrics")


def _achieved(run: Run) -> dict[str, Consumed]:
    facts = run.scan("facts").filter(pl.col("key").str.starts_with("consumed.")).collect()
    value = pl.col("value").str.strip_chars('"').cast(pl.Float64, strict=False)
    rows = facts.with_columns(value=value).drop_nulls("value").iter_rows(named=True)
    return _shares({str(row["key"]).removeprefix("consumed."): row for row in rows}, "facts")


def _shares(rows: Mapping[str, Mapping[str, Any]], table: str) -> dict[str, Consumed]:
    total = sum(row["value"] for row in rows.values() if row["value"] > 0)
    if len(rows) < 2 or not 0 < total < float("inf"):
        return {}
    return {label: Consumed(label, max(row["value"], 0.0) / total, row, table) for label, row in sorted(rows.items())}
