"""What the rules about several stores share: how a link is put into words, and the rows that prove it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.case.evidence import number
from forensics.case.joined.stores import Link, Strand
from forensics.store.run import Run


def row_of(run: Run, strand: Strand, seq: int) -> Mapping[str, Any] | None:
    """The metrics row of one record of a series; None when it is gone."""
    own = (
        (pl.col("source") == strand.source)
        & pl.col("raw_name").eq_missing(pl.lit(strand.raw_name))
        & (pl.col("name") == strand.name)
        & (pl.col("seq") == seq)
        & pl.col("attempt").eq_missing(pl.lit(strand.attempt, dtype=pl.Int32))
        & pl.col("rank").eq_missing(pl.lit(strand.rank, dtype=pl.Int32))
    )
    rows = run.scan("metrics").filter(own).head(1).collect()
    return rows.row(0, named=True) if rows.height else None


def relation(link: Link) -> str:
    """How the steps of two files fit together, as a formula with its usual reason."""
    factor, offset, a, b = link.line.factor, link.line.offset, link.a[0], link.b[0]
    if factor < 1:
        factor, offset, a, b = 1 / factor, -offset / factor, b, a
    words = f"step of {a} = {number(factor)} x step of {b} {'-' if offset < 0 else '+'} {number(abs(offset))}"
    return f"{words} ({_reason(link, factor, offset)}; {_how(link)})"


def _reason(link: Link, factor: float, offset: float) -> str:
    if not all(m.a.numbered and m.b.numbered for m in link.same):
        return "one of them prints no step, so its records are counted"
    if factor != 1:
        return "one counts log calls or micro-steps: a log interval or gradient accumulation"
    if not offset:
        return "the same steps"
    return "one counts from 0, the other from 1" if abs(offset) == 1 else "one began to count later"


def _how(link: Link) -> str:
    if link.line.clock_s is None:
        return "aligned by equal values"
    ahead = f", {number(link.line.clock_s / 3600)} h apart by their clocks" if link.line.clock_s else ""
    return f"aligned by wall time and equal values{ahead}"
