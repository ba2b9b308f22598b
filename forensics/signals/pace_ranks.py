"""Which rank of a job is slow: by its own times, or by how little it waits for the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from forensics.signals.loss_curve import Floats
from forensics.signals.pace_noise import spread
from forensics.signals.steps import ordered
from forensics.store.run import Run

_END = r"(?:_s|_ms|_sec)?$"
_UNIT = r"(?:time|ms|s|sec|seconds|duration)"
_OWN = (
    rf"(?i)(?:^|[/_. ])(?:compute|forward|fwd|backward|bwd|data|loader|dataloader|optimizer|kernel)[_ ]?{_UNIT}{_END}"
)
_WAIT = (
    r"(?i)(?:^|[/_. ])(?:wait|sync|comm|communication|allreduce|all_reduce|nccl|barrier|collective)"
    rf"[_ ]?(?:wait[_ ]?)?{_UNIT}?{_END}"
)
_FEWEST_RANKS, _FEWEST_STEPS, _BLOCK = 3, 20, 20
_FLOOR = 0.003  # spread over ranks below which no machine can be told from another, relative


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that stands out of `ranks`: `excess` over the median rank, relative (negative for waiting), and `z`.

    `blocks` is the share of blocks of steps in which it did; `rows` are its metric rows with `at`.
    """

    rank: int
    ranks: int
    excess: float
    z: float
    blocks: float
    waiting: bool
    rows: pl.DataFrame


def stragglers(run: Run, *, effect: float, z: float, persist: float) -> Iterator[Straggler]:
    """Find ranks whose own time is `effect` longer, or whose waiting is shorter, than the median rank's."""
    metrics = run.scan("metrics").filter(pl.col("rank").is_not_null() & (pl.col("value") > 0))
    for pattern, waiting in ((_OWN, False), (_WAIT, True)):
        named = metrics.filter(pl.col("name").str.contains(pattern) | pl.col("raw_name").str.contains(pattern))
        rows = ordered(named.filter(pl.col("value").is_finite())).filter(pl.col("at").is_not_null()).collect()
        for _, part in rows.group_by("raw_name", maintain_order=True):
            times = _by_rank(part, "value")
            if times is not None:
                yield from _standing_out(part, times, (effect, z, persist), waiting=waiting)


def _by_rank(rows: pl.DataFrame, value: str) -> tuple[Floats, list[int]] | None:
    """Values as steps x ranks, of the steps that every rank has; None below three ranks or twenty steps."""
    one = rows.unique(["rank", "at"], keep="first", maintain_order=True)
    wide = one.pivot("rank", index="at", values=value, maintain_order=True).drop_nulls().sort("at")
    names = sorted((c for c in wide.columns if c != "at"), key=int)
    if len(names) < _FEWEST_RANKS or wide.height < _FEWEST_STEPS:
        return None
    return wide.select(names).to_numpy().astype(np.float64), [int(n) for n in names]


def _standing_out(
    rows: pl.DataFrame, found: tuple[Floats, list[int]], least: tuple[float, float, float], *, waiting: bool
) -> Iterator[Straggler]:
    times, ranks = found
    effect, least_z, persist = least
    sign = -1.0 if waiting else 1.0
    medians = np.median(times, axis=0)
    middle = float(np.median(medians))
    scale = max(spread(medians), _FLOOR * middle)
    count = len(times) // _BLOCK
    parts = np.median(times[: count * _BLOCK].reshape(count, _BLOCK, -1), axis=1)
    usual = np.median(parts, axis=1)
    for place, rank in enumerate(ranks):
        excess, far = medians[place] / middle - 1, sign * (medians[place] - middle) / scale
        often = float(np.mean(sign * (parts[:, place] / usual - 1) > effect / 2))
        if far > least_z and sign * excess > effect and often >= persist:
            yield Straggler(
                rank, len(ranks), float(excess), float(far), often, waiting, rows.filter(pl.col("rank") == rank)
            )
