"""SLO009 recompiles: functions were compiled again and again, or gave up compiling.

What it detects: messages of torch.compile about recompilation, and about the limit of it.

Why it matters: each one stops the step for seconds; after the limit the function runs uncompiled, which is slower for
good.

How it decides: one message that the limit was hit, or `many` recompilations in one source. Either is a note: runs of
good speed hit the limit too, and whether steps became slower is judged from their times.

What else looks like this: recompilations in the first steps, which are usual: shapes and modes are met for the first
time.

What to do next: let the compiler log its guards, and remove the one that fails.

References: PyTorch documentation, "Recompilation" (torch.compile troubleshooting).

Example:
    ```events line,step,level,code,text
    12,40,info,dynamo-recompile-limit,torch._dynamo hit config.recompile_limit (8)
    ```
    => SLO009 info confidence=high step=40 cause=recompiles causal=context recompilations=1
Not this: two recompilations at the start
    ```events line,step,level,code,text
    3,1,info,dynamo-recompile,Recompiling function forward in /app/net.py:9
    5,2,info,dynamo-recompile,Recompiling function forward in /app/net.py:9
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forensics.case.evidence import event_evidence
from forensics.knowledge.errors import telling
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Recompiles:
    """Thresholds of SLO009: the number of recompilations in one source from which they are told."""

    many: int = 8


@rule(shape=Shape.SLOWDOWN, needs=("events",), config=Recompiles)
def recompiles(run: Run, cfg: Recompiles) -> Iterator[Finding]:
    """Find the source that recompiled most; the limit that was hit counts before any number."""
    code, limits = pl.col("code"), telling("recompile_limit")
    rows = run.scan("events").filter(code.is_in(telling("recompiled") | limits)).sort("source", "seq").collect()
    limit = rows.filter(code.is_in(limits))
    if limit.height:
        yield _finding(limit, rows.height, gave_up=True)
        return
    for _, part in rows.group_by("source", maintain_order=True):
        if part.height >= cfg.many:
            yield _finding(part, part.height, gave_up=False)
            return


def _finding(rows: pl.DataFrame, count: int, *, gave_up: bool) -> Finding:
    first = rows.row(0, named=True)
    told = (
        "the compiler gave up on a function: it runs uncompiled from here on" if gave_up else f"{count} recompilations"
    )
    return recompiles.finding(
        severity=Severity.INFO,
        confidence=Confidence.HIGH if gave_up else Confidence.MEDIUM,
        title=told,
        because="the log says so; each recompilation costs seconds to minutes, and the limit ends compilation for good",
        evidence=(
            event_evidence(first),
            *(event_evidence(row, EvidenceRole.RELATED) for row in rows.slice(1, 2).iter_rows(named=True)),
        ),
        onset=Onset(step=first["step"], t_ns=first["t_ns"], rank=first["rank"]),
        cause="recompiles",
        causal=Causal.CONTEXT,
        numbers={"recompilations": count},
        likely=("shapes that change from batch to batch", "a Python number of the step inside a compiled function"),
        next=(
            "run once with TORCH_LOGS=recompiles: it names the guard that fails",
            "mark the dimension dynamic (torch._dynamo.mark_dynamic), or pad to a few sizes",
        ),
    )
