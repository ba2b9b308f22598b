"""How far the clocks of nodes differ, from events that happened everywhere at once: the end of one same step.

All ranks leave a synchronous step together, so the median over shared steps of the difference in their printed times is
the difference of their clocks (plus the noise of logging).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from forensics.case.series import metric_records
from forensics.case.world import nodes
from forensics.stats.spread import median_of
from forensics.store.run import Run, derived

#: Fewer shared steps than this prove no offset.
MIN_SHARED = 3


@derived
def clock_offsets(run: Run) -> Mapping[str, float]:
    """Give the seconds by which each node's clock is ahead of the first one's; empty with fewer than two nodes."""
    of = nodes(run)
    if len(set(of.values())) < 2:
        return {}
    rows = (
        metric_records(run)
        .filter(pl.col("t_ns").is_not_null() & pl.col("step").is_not_null())
        .group_by("rank", "step")
        .agg(pl.col("t_ns").min())
        .collect()
    )
    times: dict[str, dict[int, int]] = {}
    for rank, step, t_ns in rows.iter_rows():
        if (node := of.get(rank or 0)) is not None:
            steps = times.setdefault(node, {})
            steps[step] = min(t_ns, steps.get(step, t_ns))
    first = times[min(times)] if times else {}
    apart = {node: [at[s] - first[s] for s in at.keys() & first.keys()] for node, at in sorted(times.items())}
    return {node: median_of(shared) / 1e9 for node, shared in apart.items() if len(shared) >= MIN_SHARED}
