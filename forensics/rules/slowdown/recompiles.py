"""SLO009 recompiles: functions were compiled again and again, or gave up compiling.

What it detects: messages of torch.compile about recompilation, and about the limit of it.

Why it matters: each one stops the step for seconds; after the limit the function runs uncompiled, which is slower for
good.

How it decides: one message that the limit was hit, or `many` recompilations in one source. Either is a note: runs of
good speed hit the limit too, and whether steps became slower is judged from their times. It is a warning where single
slow steps behind the start take the share `burst` of the time, the least loss that SLO001 warns of.

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

from dataclasses import dataclass

import polars as pl

from forensics.analyses.pace.account import Gravity, paced
from forensics.analyses.pace.pauses import share_of_time
from forensics.knowledge.errors import telling
from forensics.rules.kit import Finding, Findings, Run, event_evidence, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Recompiles:
    """Thresholds of SLO009.

    `many` recompilations in one source are told; single slow steps that take `burst` of the time are a loss.
    """

    many: int = 8
    burst: float = 1 - 1 / Gravity().mild


@rule(
    "slowdown",
    needs=("events", "metrics", "checkpoints", "progress"),
    config=Recompiles,
    severity="info",
    cause="recompiles",
    causal="context",
)
def recompiles(run: Run, cfg: Recompiles) -> Findings:
    """Find the source that recompiled most; the limit that was hit counts before any number."""
    code, limits = pl.col("code"), telling("recompile_limit")
    rows = run.scan("events").filter(code.is_in(telling("recompiled") | limits)).sort("source", "seq").collect()
    limit = rows.filter(code.is_in(limits))
    if limit.height:
        yield _finding(limit, rows.height, _share(run), cfg, gave_up=True)
        return
    for _, part in rows.group_by("source", maintain_order=True):
        if part.height >= cfg.many:
            yield _finding(part, part.height, _share(run), cfg, gave_up=False)
            return


def _share(run: Run) -> float:
    """The share of the time that single slow steps take in the clock that has most of it."""
    return max((share_of_time(one.steady.seconds, one.steady.excess > 0) for one in paced(run)), default=0.0)


def _finding(rows: pl.DataFrame, count: int, share: float, cfg: Recompiles, *, gave_up: bool) -> Finding:
    first = rows.row(0, named=True)
    told = (
        "the compiler gave up on a function: it runs uncompiled from here on" if gave_up else f"{count} recompilations"
    )
    slow = share >= cfg.burst
    return recompiles.finding(
        told + (f", and bursts of slow steps take {share:.0%} of the time" if slow else ""),
        "the log says so; each recompilation costs seconds to minutes, and the limit ends compilation for good",
        proof(event_evidence(first), *(event_evidence(row) for row in rows.slice(1, 2).iter_rows(named=True))),
        onset_at(first),
        severity="warning" if slow else "info",
        causal="root" if slow else "context",
        confidence="high" if gave_up else "medium",
        numbers={"recompilations": count, "share": share} if slow else {"recompilations": count},
    )
