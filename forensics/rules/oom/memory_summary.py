"""OOM027 memory-summary: the allocator's own table says that much of what it holds cannot be given back.

What it detects: the table of `torch.cuda.memory_summary()` in a log.

Why it matters: non-releasable memory is free pieces inside of segments that hold a live block. A request that is larger
than each piece fails although as much is free.

How it decides: non-releasable over reserved memory in the last table of a log is `share` or more. How often the
allocator had to free its cache and try again is told beside it, and is a note by itself.

What else looks like this: a table that was printed between two phases, right after large tensors were freed.

What to do next: expandable segments; fewer different shapes.

References: PyTorch, torch.cuda.memory_summary; CUDA semantics, "Memory management".

Example:
    ```events source,line,code,text,attrs
    a.log,4,memory-summary-head,| CUDA OOMs: 1 | cudaMalloc retries: 4 |,"{""role"":""context"",""ooms"":""1"",""retries"":""4""}"
    a.log,20,memory-summary,| GPU reserved memory | 75776 MiB |,"{""role"":""context"",""what"":""GPU reserved memory"",""now"":""75776 MiB""}"
    a.log,24,memory-summary,| Non-releasable memory | 21217 MiB |,"{""role"":""context"",""what"":""Non-releasable memory"",""now"":""21217 MiB""}"
    ```
    => OOM027 warning confidence=medium cause=fragmentation share=0.2800 retries=4
Not this: little that cannot be given back
    ```events source,line,code,text,attrs
    a.log,4,memory-summary-head,| CUDA OOMs: 0 | cudaMalloc retries: 0 |,"{""role"":""context"",""ooms"":""0"",""retries"":""0""}"
    a.log,20,memory-summary,| GPU reserved memory | 75776 MiB |,"{""role"":""context"",""what"":""GPU reserved memory"",""now"":""75776 MiB""}"
    a.log,24,memory-summary,| Non-releasable memory | 1217 MiB |,"{""role"":""context"",""what"":""Non-releasable memory"",""now"":""1217 MiB""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.case.errors.attributes import attributes
from forensics.case.last_steps import last_step
from forensics.knowledge.errors import telling
from forensics.rules.kit import Findings, Onset, Run, event_evidence, proof, rule

_SIZE = re.compile(r"([\d.]+) *([KMGT]?)i?B?$")
_SCALE = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T"))}
_RESERVED, _LOST = "GPU reserved memory", "Non-releasable memory"


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of OOM027: the share of reserved memory that cannot be given back."""

    share: float = 0.2


@rule("oom", needs=("events", "metrics"), config=Config, cause="fragmentation", confidence="medium")
def memory_summary(run: Run, cfg: Config) -> Findings:
    """Judge the last table of each log, and tell the worst."""
    codes = [*telling("memory_summary"), *telling("memory_retries")]
    rows = run.scan("events").filter(pl.col("code").is_in(codes)).sort("source", "line", "seq").collect()
    tables = [_table(part) for _, part in rows.group_by("source", maintain_order=True)]
    found = [(share, retries, last) for last, retries, share in tables if share >= cfg.share or retries]
    if not found:
        return
    share, retries, row = max(found, key=lambda one: one[:2])
    step = last_step(run, row["source"], row["line"] or row["byte"] or 0, row["t_ns"], row["rank"])
    again = f"; it freed its cache and tried again {retries} time{'s' if retries > 1 else ''}" if retries else ""
    yield memory_summary.finding(
        f"{100 * share:.0f} % of the memory that the allocator reserves cannot be given back{again}",
        "free pieces between live blocks serve no larger request and go back to no other program",
        proof(event_evidence(row)),
        Onset(step=step, rank=row["rank"]),
        severity="warning" if share >= cfg.share else "info",
        numbers={"share": share, "retries": retries},
    )


def _table(rows: pl.DataFrame) -> tuple[Mapping[str, Any], int, float]:
    """The last row of a log's last table, its retries, and the share of reserved memory that is not releasable."""
    told: dict[str, float] = {}
    retries = 0
    for row in rows.iter_rows(named=True):
        attrs = attributes(row["attrs"])
        retries = int(attrs.get("retries") or retries)
        if hit := _SIZE.match(attrs.get("now", "").strip()):
            told[attrs.get("what", "")] = float(hit[1]) * _SCALE[hit[2]]
    reserved = told.get(_RESERVED, 0.0)
    return rows.row(-1, named=True), retries, told.get(_LOST, 0.0) / reserved if reserved else 0.0
