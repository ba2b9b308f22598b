"""SLO036 no-fast-path: much of the device's time is spent in matrix products of full fp32.

What it detects: kernels of a trace whose names say that they multiply fp32 without tensor cores (`sgemm`).

Why it matters: an H100 multiplies bf16 at about 15 times, and TF32 at 7 times, the rate of fp32.

How it decides: their share of the summed time of the device is `share` or more.

What else looks like this: a part of the model that is kept in fp32 on purpose, such as a router or a loss.

What to do next: train in bf16, or allow TF32; a fused attention, torch.compile, sizes that are multiples of 8.

References: NVIDIA H100 datasheet; PyTorch, CUDA semantics, "TensorFloat-32".

Example:
    ```spans category,name,start_ns,dur_ns
    kernel,ampere_sgemm_128x64_tn,0,700000
    kernel,vectorized_elementwise_kernel,700000,300000
    ```
    => SLO036 warning confidence=medium cause=no_fast_path share=0.7000
Not this: products on tensor cores
    ```spans category,name,start_ns,dur_ns
    kernel,ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_32x6_tn,0,700000
    kernel,sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16,700000,300000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.traces.gpu import gpu_rows
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.slowdown._spans import longest, ms, on_rank, percent, quoted, span_evidence


@dataclass(frozen=True, slots=True)
class FullPrecision:
    """Threshold of SLO036: a share of the summed device time; the limit used in practice."""

    share: float = 0.2


@rule("slowdown", needs=("spans",), config=FullPrecision, severity="warning", confidence="medium", cause="no_fast_path")
def full_precision(run: Run, cfg: FullPrecision) -> Findings:
    """Find the trace with most time in fp32 products."""
    rows = gpu_rows(run)
    full, time = pl.col("name").str.contains(words_for("full_precision_kernel")), pl.col("dur_ns")
    shares = rows.group_by("source", maintain_order=True).agg(
        pl.col("rank").max(), share=time.filter(full).sum() / time.sum()
    )
    found = shares.filter(pl.col("share") >= cfg.share).sort(["share", "source"], descending=[True, False])
    if found.is_empty():
        return
    row = found.row(0, named=True)
    first, *more = longest(rows.filter(full & (pl.col("source") == row["source"])))
    yield full_precision.finding(
        f"{percent(row['share'])} of the device's time is matrix products in fp32, without tensor cores{on_rank(row)}",
        "the names of the kernels say so",
        proof(
            span_evidence(first, f"{quoted(first['name'])} ran {ms(first['dur_ns'])}"),
            *(span_evidence(r, f"{quoted(r['name'])} ran {ms(r['dur_ns'])}") for r in more),
        ),
        Onset(rank=row["rank"]),
        numbers={"share": row["share"]},
    )
