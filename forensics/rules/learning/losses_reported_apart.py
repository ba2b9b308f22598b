"""LRN030 losses-reported-apart: the program itself compared the loss of the ranks, and printed that they differ.

What it detects: a line that lists the losses of all ranks because they are not the same.

Why it matters: ranks that average their gradients and hold one model print one averaged loss. Where the check was
written for that loss, the weights have parted.

How it decides: by the words of the program. Of three values and more the one that is farthest from the median names its
rank, where it is `times` as far as the next.

What else looks like this: a check of local losses, which differ by their data.

What to do next: compare a checksum of the weights over the ranks, from the step before the first such line.

References: PyTorch, torch.distributed, all_gather.

Example:
    ```events source,line,code,text,attrs
    a.log,9,losses-differ,"losses differ across ranks: [2.301, 2.305, 2.911, 2.302]","{""role"":""context"",""values"":""2.301, 2.305, 2.911, 2.302""}"
    ```
    => LRN030 warning confidence=medium rank=2 cause=ranks_parted lines=1
Not this: a line that only speaks of ranks
    ```events source,line,code,text,attrs
    a.log,9,note,losses agree across ranks,"{""role"":""context""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from forensics.case.errors.attributes import attributes
from forensics.case.last_steps import last_step
from forensics.knowledge.errors import telling
from forensics.rules.kit import Findings, Onset, Run, at_step, event_evidence, number, proof, rule

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reported:
    """Threshold of LRN030: how many times as far as the next rank one must be to be named."""

    times: float = 3.0


@rule(
    "learning",
    needs=("events", "metrics"),
    config=Reported,
    severity="warning",
    confidence="medium",
    cause="ranks_parted",
)
def losses_reported_apart(run: Run, cfg: Reported) -> Findings:
    """Find the first line of the first log that says so."""
    wanted = pl.col("code").is_in(telling("losses_differ"))
    rows = run.scan("events").filter(wanted).sort("source", "line", "seq").collect()
    if rows.is_empty():
        return
    row = rows.row(0, named=True)
    values = [float(hit) for hit in _NUMBER.findall(attributes(row["attrs"]).get("values", ""))]
    odd = _odd(values, cfg.times)
    step = row["step"]
    if step is None:
        step = last_step(run, row["source"], row["line"] or row["byte"] or 0, row["t_ns"], row["rank"])
    who = "" if odd is None else f"; rank {odd} is farthest from the others ({number(values[odd])})"
    yield losses_reported_apart.finding(
        f"the program reports that the losses of its ranks differ, first after {at_step(step)}{who}",
        f"{rows.height} such line{'s' if rows.height > 1 else ''}, by a check of the program's own",
        proof(event_evidence(row)),
        Onset(step=step, t_ns=row["t_ns"], rank=odd),
        culprits=() if odd is None else (odd,),
        numbers={"lines": rows.height},
    )


def _odd(values: list[float], times: float) -> int | None:
    """Give the one value that is `times` as far from the median as any other; a value that is not finite is."""
    if len(values) <= 2:
        return None
    median = sorted(values)[len(values) // 2]
    apart = sorted(((abs(value - median), rank) for rank, value in enumerate(values)), reverse=True)
    (most, rank), (next_most, _) = apart[:2]
    return rank if most > times * next_most else None
