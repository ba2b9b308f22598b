"""What the rules on profiler traces share: evidence from spans, and the longest of what they count."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from forensics.analyses.traces.gaps import UNKNOWN
from forensics.analyses.traces.kernels import short_name
from forensics.rules.kit import Evidence, Locator, Row


def span_evidence(row: Row, quote: str) -> Evidence:
    """Evidence of one row of spans, or of a frame derived from them: the event by its number in the file."""
    return Evidence(
        source=row["source"],
        locator=Locator(record=row["seq"]),
        quote=quote,
        step=row.get("step"),
        rank=row["rank"],
        t_ns=row["start_ns"],
        name=row["name"],
        value=row["dur_ns"] / 1e9,
    )


def ran(row: Row) -> Evidence:
    """Evidence of a span by its name and how long it ran."""
    return span_evidence(row, f"{quoted(row['name'])} ran {ms(row['dur_ns'])}")


def quoted(name: str) -> str:
    """A name of the input in quotes, its specials escaped, at most 120 characters."""
    return json.dumps(short_name(name)[:120], ensure_ascii=False)


def ms(ns: float) -> str:
    """Nanoseconds as milliseconds, three significant digits or all before the point."""
    value = ns / 1e6
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def percent(share: float) -> str:
    """A share of one in percent."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def longest(rows: pl.DataFrame, most: int = 3) -> list[dict[str, Any]]:
    """The longest rows by `dur_ns`, the earlier first among equals."""
    order = pl.arg_sort_by("dur_ns", "start_ns", descending=[True, False])
    return rows[rows.select(order.head(most)).to_series()].to_dicts()


def on_rank(row: Row) -> str:
    """` on rank 3`, or nothing when the trace does not say."""
    return "" if row["rank"] is None else f" on rank {row['rank']}"


def mostly(cause: str) -> str:
    """Why the device was idle for most of its idle time, as the end of a sentence."""
    return f"most of it by {cause}" if cause != UNKNOWN else "no call of the host explains most of it"
