"""What a run logged of the data that it consumed, source by source: counts of tokens or samples, or shares drawn.

Metrics such as OLMo-core's `data_mixture/tokens/source=web`, `data/web/tokens_seen` or `consumed_tokens/web`, and the
shares that Megatron prints when it builds a blend (`dataset 0, input: 0.3, achieved: 0.2999`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.case.series import keys_of, metric_rows
from forensics.store.run import Run

_WHAT = r"(?:tokens|samples|sequences|seqs|documents|docs|examples|bytes|batches)"
_HEAD = (
    r"(?:data(?:_?mix(?:ture)?|_?loader|set)?s?|mix(?:ture)?|train|consumed|domains?|sources?|blend|streams?|seen"
    r")"
)
#: Two forms: what is counted stands before the name of the source, or behind it.
_NAMES = (
    re.compile(
        rf"(?i)^(?:{_HEAD}[/._])*(?:(?:total_|cumulative_|num_|n_)?{_WHAT}(?:_(?:seen|consumed|per_(?:source|domain|dataset)))?"
        rf"|consumed(?:_{_WHAT})?|(?:seen|consumed)_{_WHAT})[/.](?:(?:source|domain|dataset|name)[=:_/])?"
        r"(?P<name>[\w:+-]{1,80})$"
    ),
    re.compile(
        rf"(?i)^(?:{_HEAD}[/._])+(?P<name>[\w:+-]{{1,80}})[/.]"
        rf"(?:(?:num_|n_|total_|cumulative_)?{_WHAT}(?:_(?:seen|consumed))?|(?:seen|consumed)(?:_{_WHAT})?)$"
    ),
)
_NOT = re.compile(
    r"(?i)^(?:per_?(?:sec\w*|step|gpu|device|second)|total|all|sum|sec|second|mean|max|min|count|global|local|batch|seen"
    r"|consumed|loss|step|epoch|device|gpu|rank|world|train|eval|val)$"
)
_MOST = 200


@dataclass(frozen=True, slots=True)
class Consumed:
    """One source of data: its share of all that was consumed, out of 1, and the last row that says it."""

    label: str
    share: float
    row: Mapping[str, Any]
    table: str


def consumed(run: Run) -> dict[str, Consumed]:
    """Shares of what was consumed by source; empty where fewer than two sources were counted."""
    return run.derived(_found)


def source_of(name: str) -> str | None:
    """The source of data that a metric counts; None for any other metric."""
    found = next((match for pattern in _NAMES if (match := pattern.match(name))), None)
    return None if found is None or _NOT.match(found["name"]) else found["name"].lower()


def _found(run: Run) -> dict[str, Consumed]:
    return _counted(run) or _achieved(run)


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
