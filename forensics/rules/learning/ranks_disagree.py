"""LRN015 ranks-disagree: ranks that logged one and the same loss stopped doing so.

What it detects: a loss that was equal on all ranks, as an averaged one is, and differs between them from some step
on; or one rank whose own loss stays away from those of the others.

Why it matters: ranks that hold one model and average their gradients log one averaged loss. When they part, so
have their weights, or a rank sees other data.

How it decides: steps are compared that all ranks logged. If `equal` of the steps before the onset agree to the last
digit, and `parted` of those after it differ by more than `tolerance`, the ranks parted: a warning. Losses that never
agreed are local ones and differ by their data: then only a rank whose median distance from the others is `sigmas`
times their spread and above `apart` is noted.

What else looks like this: pipeline stages that print a placeholder; ranks that print an average over other steps.

What to do next: compare a checksum of the weights over ranks; check that the model is wrapped for data parallelism, and
that nothing updates parameters outside the reduction.

References: PyTorch documentation, DistributedDataParallel, on what it keeps equal.

Example:
    ```metrics step,rank,name,value
    10,0,loss,4.991
    10,1,loss,4.991
    20,0,loss,4.765
    20,1,loss,4.765
    30,0,loss,4.564
    30,1,loss,4.564
    40,0,loss,4.313
    40,1,loss,4.313
    50,0,loss,4.145
    50,1,loss,4.145
    60,0,loss,3.952
    60,1,loss,3.952
    70,0,loss,3.775
    70,1,loss,3.775
    80,0,loss,3.752
    80,1,loss,3.752
    90,0,loss,3.528
    90,1,loss,3.528
    100,0,loss,3.414
    100,1,loss,3.414
    110,0,loss,3.221
    110,1,loss,3.221
    120,0,loss,3.153
    120,1,loss,3.153
    130,0,loss,3.095
    130,1,loss,3.219
    140,0,loss,3.028
    140,1,loss,3.21
    150,0,loss,2.963
    150,1,loss,3.2
    160,0,loss,2.839
    160,1,loss,3.123
    ```
    => LRN015 warning confidence=medium step=130 rank=1 cause=ranks_parted ranks=2 steps=16
Not this: local losses, which differ by their data
    ```metrics step,rank,name,value
    10,0,loss,5.219
    10,1,loss,5.067
    20,0,loss,4.924
    20,1,loss,4.462
    30,0,loss,4.289
    30,1,loss,4.712
    40,0,loss,4.148
    40,1,loss,4.167
    50,0,loss,4.288
    50,1,loss,4.499
    60,0,loss,3.995
    60,1,loss,3.923
    70,0,loss,3.694
    70,1,loss,3.761
    80,0,loss,3.777
    80,1,loss,3.736
    90,0,loss,3.561
    90,1,loss,3.616
    100,0,loss,3.506
    100,1,loss,3.672
    110,0,loss,3.154
    110,1,loss,3.182
    120,0,loss,3.068
    120,1,loss,3.367
    130,0,loss,2.988
    130,1,loss,2.838
    140,0,loss,3.166
    140,1,loss,3.368
    150,0,loss,2.902
    150,1,loss,2.724
    160,0,loss,2.761
    160,1,loss,2.946
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from forensics.case.evidence import at_step, metric_evidence
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.signals.loss_curve import Curve, Floats, curves
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Disagree:
    """Thresholds of LRN015: numbers of common steps and ranks, shares of steps, and relative differences."""

    steps: int = 10
    ranks: int = 4
    equal: float = 0.95
    parted: float = 0.9
    tolerance: float = 1e-3
    apart: float = 0.05
    sigmas: float = 6.0


@dataclass(frozen=True, slots=True)
class _Table:
    steps: Floats
    values: Floats  # one row a step, one column a rank
    ranks: tuple[int, ...]
    curves: tuple[Curve, ...]


@rule("LRN015", shape=Shape.LEARNING, needs=("metrics",), config=Disagree)
def ranks_disagree(run: Run, cfg: Disagree | None = None) -> Iterator[Finding]:
    """Compare the losses of the ranks of the first attempt that has several."""
    cfg = cfg or Disagree()
    found = _table(run, cfg)
    if found is None:
        return
    high, low = found.values.max(axis=1), found.values.min(axis=1)
    spread = (high / 2 - low / 2) / np.maximum(np.abs(found.values).max(axis=1) / 2, 1e-12)
    equal = spread == 0
    onset = int(np.argmin(equal)) if not equal.all() else len(equal)
    if equal.sum() < cfg.steps // 2 and equal.mean() < 0.5:
        yield from _apart(found, cfg)
        return
    after = spread[onset:]
    if onset >= cfg.steps // 2 and len(after) >= 3 and float((after > cfg.tolerance).mean()) >= cfg.parted:
        yield _parted(found, onset, spread)


def _table(run: Run, cfg: Disagree) -> _Table | None:
    """Align the losses of all ranks of one attempt on their common steps."""
    own = [c for c in curves(run, "loss") if c.rank is not None]
    by: dict[tuple[int, str], dict[int, Curve]] = {}
    for c in own:
        by.setdefault((c.attempt, c.raw_name), {}).setdefault(c.rank or 0, c)
    ranks = next((g for _, g in sorted(by.items()) if len(g) > 1), None)
    if ranks is None:
        return None
    table: pl.DataFrame | None = None
    for rank, curve in sorted(ranks.items()):
        part = curve.rows.select("at", pl.col("value").alias(str(rank))).drop_nulls().unique("at", keep="first")
        table = part if table is None else table.join(part, on="at", how="inner")
    if table is None or table.height < cfg.steps:
        return None
    table = table.sort("at")
    order = tuple(sorted(ranks))
    values = table.select(str(r) for r in order).to_numpy()
    return _Table(table["at"].cast(pl.Float64).to_numpy(), values, order, tuple(ranks[r] for r in order))


def _apart(found: _Table, cfg: Disagree) -> Iterator[Finding]:
    """Find a rank that keeps away from the others, whose spread is known."""
    if len(found.ranks) < cfg.ranks or float(found.values.min()) <= 0:
        return
    distance = np.median(np.log(found.values) - np.median(np.log(found.values), axis=1, keepdims=True), axis=0)
    worst = int(np.argmax(np.abs(distance)))
    others = np.delete(distance, worst)
    spread = max(1.4826 * float(np.median(np.abs(others - np.median(others)))), 0.005)
    if abs(distance[worst]) > max(cfg.apart, cfg.sigmas * spread):
        title = f"rank {found.ranks[worst]} has a loss {np.expm1(distance[worst]):+.0%} from that of the others"
        because = f"over {len(found.steps)} common steps of {len(found.ranks)} ranks"
        yield _finding(found, (worst, 0), Severity.INFO, (title, because, "rank_apart"))


def _parted(found: _Table, onset: int, spread: Floats) -> Finding:
    row = found.values[onset]
    odd = int(np.argmax(np.abs(row - np.median(row)))) if len(row) > 2 else 1
    step = int(found.steps[onset])
    title = (
        f"the ranks' losses were equal up to {at_step(int(found.steps[onset - 1]))} and differ from {at_step(step)} on"
    )
    because = (
        f"the median difference since then is {float(np.median(spread[onset:])):.2%}, over {len(found.ranks)} ranks"
    )
    return _finding(found, (odd, onset), Severity.WARNING, (title, because, "ranks_parted"))


def _finding(found: _Table, at: tuple[int, int], severity: Severity, words: tuple[str, str, str]) -> Finding:
    odd, onset = at
    step = int(found.steps[onset])
    other = 0 if odd else 1
    pair = [_row(found.curves[i], step) for i in (odd, other)]
    return Finding(
        rule="LRN015",
        shape=Shape.LEARNING,
        severity=severity,
        confidence=Confidence.MEDIUM,
        title=words[0],
        because=words[1],
        evidence=(metric_evidence(pair[0]), metric_evidence(pair[1], EvidenceRole.RELATED)),
        onset=Onset(step=step, t_ns=pair[0]["t_ns"], rank=found.ranks[odd]),
        culprits=(found.ranks[odd],),
        cause=words[2],
        causal=Causal.ROOT,
        numbers={"ranks": len(found.ranks), "steps": len(found.steps)},
        likely=(
            "a rank without the data-parallel wrapper",
            "hooks or normalisation that differ by rank",
            "a faulty device",
        ),
        next=("compare a checksum of the weights over ranks", "compare each rank's gradient norm after the reduction"),
    )


def _row(curve: Curve, step: int) -> dict[str, Any]:
    return curve.rows.filter(pl.col("at") == step).row(0, named=True)
