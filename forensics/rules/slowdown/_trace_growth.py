"""A share of the device's time in a later profiling window against the first: the finding that three rules make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
from forensics.model import Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.rules.slowdown._trace_kit import longest, ms, percent, quoted, span_evidence
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Growth:
    """What grew: the rule, the words for the work, the cause, and what to look at."""

    rule: str
    what: str
    cause: str
    likely: tuple[str, ...]
    next: tuple[str, ...]


def finding(run: Run, growth: Growth, pair: Mapping[str, Any], share: str, which: pl.Expr) -> Finding:
    """Say by how much `share` grew from the first window to the last, with the longest work of either as evidence."""
    before, after = pair[f"{share}_first"], pair[f"{share}_last"]
    rows = gpu_rows(run).filter(which)
    late = longest(rows.filter(pl.col("source") == pair["source_last"]), 2)
    early = longest(rows.filter(pl.col("source") == pair["source_first"]), 1)
    when = "" if pair["step_lo_last"] is None else f" by step {pair['step_lo_last']}"
    rank = pair["rank"]
    return Finding(
        rule=growth.rule,
        shape=Shape.SLOWDOWN,
        severity=Severity.WARNING,
        confidence=Confidence.MEDIUM,
        title=f"{growth.what} grew from {percent(before)} to {percent(after)} between two traces{when}",
        because=f"of {pair['source_first']} and {pair['source_last']}, the first and the last trace of this rank",
        evidence=(
            *(span_evidence(r, f"{quoted(r['name'])} ran {ms(r['dur_ns'])}") for r in late),
            *(span_evidence(r, f"before: ran {ms(r['dur_ns'])}", EvidenceRole.RELATED) for r in early),
        ),
        onset=Onset(step=pair["step_lo_last"], rank=rank, step_lo=pair["step_hi_first"]),
        cause=growth.cause,
        numbers={"before_share": before, "after_share": after},
        likely=growth.likely,
        next=growth.next,
    )


def most_grown(pairs: pl.DataFrame, share: str, bad: pl.Expr) -> dict[str, Any] | None:
    """The pair of windows that is `bad` and whose `share` grew most, if any."""
    found = pairs.filter(bad).sort(pl.col(f"{share}_last") - pl.col(f"{share}_first"), descending=True)
    return found.row(0, named=True) if found.height else None
