"""What the device of a trace is busy with: collectives beside which nothing computes, and products in full fp32."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gpu import COMMUNICATION, gpu_rows
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Onset, Run, Struct, fact_evidence, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, ran, span_evidence

#: The key under which a summary of KempnerForge's profiler has its share of collectives, in per cent.
_SUMMARY = "trace.summary.share_pct.Communication"


class Exposed(Struct, frozen=True):
    """Thresholds of SLO013: share of the traced time, and fewest collectives.

    `most` is the share of the device's time in a summary of kernels, which does not tell what overlaps: collectives
    that take longer than all other kernels together are exposed, whatever runs beside them.
    """

    exposed_share: float = 0.20
    collectives: int = 4
    most: float = 0.5


@rule(
    "SLO013 trace-exposed-communication", "spans facts", severity="warning", confidence="medium", cause="communication"
)
def trace_exposed_communication(run: Run, cfg: Exposed) -> Findings:
    """Find the trace with the largest share of exposed communication."""
    counts = gpu_rows(run).group_by("source").agg(collectives=(pl.col("kind") == COMMUNICATION).sum())
    rows = by_rank(run).join(counts, on="source").with_columns(lost=pl.col("exposed_ns") / pl.col("span_ns"))
    found = rows.filter(pl.col("collectives") >= cfg.collectives, pl.col("lost") >= cfg.exposed_share)
    if found.is_empty():
        yield from _summarised(run, cfg)
        return
    row = found.sort(["lost", "source"], descending=[True, False]).row(0, named=True)
    mine = (pl.col("source") == row["source"]) & (pl.col("kind") == COMMUNICATION)
    first, *more = longest(gpu_rows(run).filter(mine))
    hidden = row["overlap_ns"] / row["communication_ns"]
    many = f"; seen in {found.height} of {rows.height} traces" if rows.height > 1 else ""
    yield trace_exposed_communication.finding(
        f"{percent(row['lost'])} of the traced time is communication and nothing is computed{on_rank(row)}",
        f"collectives take {ms(row['communication_ns'])} of {ms(row['span_ns'])}, "
        f"{percent(hidden)} of it under computation{many}",
        proof(ran(first), *(span_evidence(r, f"ran {ms(r['dur_ns'])}") for r in more)),
        numbers={"exposed_share": row["lost"], "overlap_share": hidden, "exposed_s": row["exposed_ns"] / 1e9},
    )


def _summarised(run: Run, cfg: Exposed) -> Findings:
    """The same of a profiler's summary, where no trace says more."""
    share = pl.col("value").cast(pl.Float64, strict=False) / 100
    rows = run.scan("facts").filter(pl.col("key").str.starts_with(_SUMMARY)).with_columns(share=share).collect()
    found = rows.filter(pl.col("share") > cfg.most).sort(["share", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    yield trace_exposed_communication.finding(
        f"{percent(row['share'])} of the device's time is communication: it takes longer than all computing",
        "what takes longer than everything beside it cannot be hidden under it",
        proof(fact_evidence(row)),
        numbers={"communication_share": row["share"]},
    )


class FullPrecision(Struct, frozen=True):
    """Threshold of SLO036: a share of the summed device time; the limit used in practice."""

    share: float = 0.2


@rule("SLO036 no-fast-path", "spans", severity="warning", confidence="medium", cause="no_fast_path")
def full_precision(run: Run, cfg: FullPrecision) -> Findings:
    """Find the trace with most time in fp32 products."""
    rows = gpu_rows(run)
    full, time = pl.col("name").str.contains(words_for("full_precision_kernel")), pl.col("dur_ns")
    of_full = time.filter(full).sum() / time.sum()
    shares = rows.group_by("source", maintain_order=True).agg(pl.col("rank").max(), share=of_full)
    found = shares.filter(pl.col("share") >= cfg.share).sort(["share", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    yield full_precision.finding(
        f"{percent(row['share'])} of the device's time is matrix products in fp32, without tensor cores{on_rank(row)}",
        "the names of the kernels say so",
        proof(*map(ran, longest(rows.filter(full & (pl.col("source") == row["source"]))))),
        Onset(rank=row["rank"]),
        numbers={"share": row["share"]},
    )
