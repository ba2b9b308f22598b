"""A share of the device's time in a later profiling window against the first: the finding that three rules make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.traces.gpu import COMMUNICATION, MEMORY, gpu_rows
from forensics.analyses.traces.windows import is_other
from forensics.registry import Rule
from forensics.rules.kit import Finding, Onset, proof
from forensics.rules.slowdown._spans import longest, ms, percent, quoted, span_evidence
from forensics.store.run import Run

#: The work whose share it is, in words, and which rows it is.
_WORK = {
    "comm_share": ("communication with nothing computed meanwhile", pl.col("kind") == COMMUNICATION),
    "memory_share": ("copies and sets of memory", pl.col("kind") == MEMORY),
    "other_share": (
        "kernels other than matrix products, attention, convolutions, communication and copies",
        is_other(),
    ),
}


def grown(rule: Rule, run: Run, pair: Mapping[str, Any], share: str) -> Finding:
    """Say by how much `share` grew from the first window to the last, with the longest work of either as evidence."""
    before, after = pair[f"{share}_first"], pair[f"{share}_last"]
    what, which = _WORK[share]
    rows = gpu_rows(run).filter(which)
    late = longest(rows.filter(pl.col("source") == pair["source_last"]), 2)
    early = longest(rows.filter(pl.col("source") == pair["source_first"]), 1)
    when = "" if pair["step_lo_last"] is None else f" by step {pair['step_lo_last']}"
    return rule.finding(
        f"{what} grew from {percent(before)} to {percent(after)} between two traces{when}",
        f"of {pair['source_first']} and {pair['source_last']}, the first and the last trace of this rank",
        proof(
            *(span_evidence(r, f"{quoted(r['name'])} ran {ms(r['dur_ns'])}") for r in late),
            *(span_evidence(r, f"before: ran {ms(r['dur_ns'])}") for r in early),
        ),
        Onset(step=pair["step_lo_last"], rank=pair["rank"], step_lo=pair["step_hi_first"]),
        numbers={"before_share": before, "after_share": after},
    )


def rose(share: str, points: float, ratio: float) -> pl.Expr:
    """Whether a share grew by at least `points` and `ratio` times from the first window to the last."""
    before, after = pl.col(f"{share}_first"), pl.col(f"{share}_last")
    return (after - before >= points) & (after >= ratio * before)


def multiplied(each: str, ratio: float) -> pl.Expr:
    """Whether there are at least `ratio` times as many of a kind a step."""
    return (pl.col(f"{each}_last") >= ratio * pl.col(f"{each}_first")).fill_null(value=False)


def most_grown(pairs: pl.DataFrame, share: str, bad: pl.Expr) -> dict[str, Any] | None:
    """The pair of windows that is `bad` and whose `share` grew most, if any."""
    found = pairs.filter(bad).sort(pl.col(f"{share}_last") - pl.col(f"{share}_first"), descending=True)
    return found.row(0, named=True) if found.height else None
