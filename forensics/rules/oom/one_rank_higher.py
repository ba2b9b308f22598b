"""OOM008 one-rank-higher: one rank needs clearly more memory than the others.

What it detects: a rank whose highest value lies far above the median of the highest values of all ranks, in the same
metric.

Why it matters: the fullest rank decides whether the job fits. What makes it fuller is work that the others do not
have: the embedding or the head in a pipeline, a master copy, gathered outputs, or a process on the wrong device.

How it decides: at least `ranks` ranks print the same metric. Of each the highest value of its last attempt counts. One
reaches `ratio` times the median of these or more, and `gib` more. It is a warning where that rank ran out of memory,
else a note.

What else looks like this: pipeline parallelism, where the first and last stages are larger by design.

What to do next: see what only that rank does: saving, logging, evaluation, gathered states; set the device before the
first CUDA call (`torch.cuda.set_device`), and load checkpoints with `map_location`.

References: PyTorch, `torch.load`, "map_location"; Narayanan et al. 2021 on stages of unequal size.

Example:
    ```metrics
    step: 10 20 10 20 10 20 10 20
    rank: 0 0 1 1 2 2 3 3
    name: mem_allocated_gib
    value: 30.5 30.5 21.5*6
    ```
    => OOM008 info confidence=medium rank=0 cause=memory_imbalance causal=context ratio=1.419 median_gib=21.50
Not this: ranks that differ a little
    ```metrics
    step: 10 20 10 20 10 20
    rank: 0 0 1 1 2 2
    name: mem_allocated_gib
    value: 22.5 22.5 21.5 21.5 21.75 21.5
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forensics.analyses.memory.ranks import imbalances
from forensics.rules.kit import Findings, Onset, Run, proof, rule
from forensics.rules.oom._memory import GIB, fatal, message_evidence, ranks, series_evidence, size


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of OOM008: ranks, ratio to the median, and GiB above it (less is a logger's or NCCL's own memory)."""

    ranks: int = 3
    ratio: float = 1.2
    gib: float = 1.0


@rule(
    "oom",
    needs=("metrics", "events", "facts"),
    config=Config,
    confidence="medium",
    cause="memory_imbalance",
    causal="context",
)
def one_rank_higher(run: Run, cfg: Config) -> Findings:
    """Find the rank that stands out most."""
    for row in imbalances(run):
        if len(row.levels) < cfg.ranks or row.ratio < cfg.ratio or row.top.peak - row.median < cfg.gib:
            continue
        died = [m for m in fatal(run) if m.rank == row.top.rank]
        yield one_rank_higher.finding(
            f"rank {row.top.rank} reaches {size(row.top.peak * GIB)}, {row.ratio:.2f} times the median of"
            f" {len(row.levels)} ranks ({size(row.median * GIB)}; {row.name})",
            "the fullest rank decides whether the job fits; the highest value of each rank is compared",
            proof(
                *series_evidence(row.top, int(np.argmax(row.top.y))),
                *series_evidence(row.lowest, int(np.argmax(row.lowest.y))),
                *(message_evidence(m) for m in died[:1]),
            ),
            Onset(rank=row.top.rank),
            severity="warning" if died else "info",
            culprits=ranks(row.top),
            numbers={"ratio": row.ratio, "median_gib": row.median, "ranks": len(row.levels)},
        )
        return
