"""HNG006 device-stopped: a rank holds collectives pending that its peers completed; its device stands still.

What it detects: device lag in dumps. The host of that rank went on enqueuing, so nothing looks late by its sequence
numbers.

Why it matters: this points at one GPU (or its stream), not at the program; restarting elsewhere is the remedy.

How it decides: at least two operations that a rank holds pending and that another member of the same group completed,
and at least half as many as the rank with most of them; no more than half of the ranks.

What else looks like this: the watchdog of a rank that was stuck itself and did not note what was completed.

What to do next: read the kernel log of that node for Xid lines, and take the GPU out before the restart.

References: NVIDIA, "XID Errors"; PyTorch, "Flight Recorder for Debugging Stuck Jobs".

Example:
    ```collectives rank,group,ranks,seq,op,in_sizes,dtype,state,attrs
    0,5,"[0, 1, 2]",7,all_reduce,[[8]],Float,completed,{}
    0,5,"[0, 1, 2]",8,all_reduce,[[8]],Float,completed,{}
    1,5,"[0, 1, 2]",7,all_reduce,[[8]],Float,scheduled,{}
    1,5,"[0, 1, 2]",8,all_reduce,[[8]],Float,scheduled,{}
    2,5,"[0, 1, 2]",8,all_reduce,[[8]],Float,completed,{}
    ```
    => HNG006 info confidence=medium rank=1 cause=device_stall causal=context weight=6
Not this:
    ```collectives rank,group,ranks,seq,op,in_sizes,dtype,state,attrs
    0,5,"[0, 1]",7,all_reduce,[[8]],Float,completed,{}
    1,5,"[0, 1]",7,all_reduce,[[8]],Float,scheduled,{}
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.differs import first_difference
from forensics.analyses.hang.lag import device_lags
from forensics.case.rank_spans import ranks_do
from forensics.rules.hang.clue import Clue, gives_clues, of_entry
from forensics.rules.kit import Run

_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of HNG006: fewest lagging operations, and the share of the worst rank's count that also counts."""

    fewest: int = 2
    share: float = 0.5


@gives_clues(config=Config)
def device_stopped(run: Run) -> Iterator[Clue]:
    """Ranks that hold pending what their peers completed."""
    cfg = run.threshold(Config)
    lags = device_lags(run)
    most = max((lag.count for lag in lags.values()), default=0)
    bad = sorted(r for r, lag in lags.items() if lag.count >= max(cfg.fewest, cfg.share * most))
    if not bad or len(bad) * 2 > len(recorded(run).ranks) or first_difference(run) is not None:
        return
    counts = ", ".join(f"{lags[r].count} on rank {r}" for r in bad[:_SHOWN])
    why = ranks_do(bad, f"have unfinished collectives that peers completed ({counts})")
    yield Clue(tuple(bad), "device_stall", 6, "recorder", why, tuple(of_entry(lags[r].first) for r in bad[:_SHOWN]))
