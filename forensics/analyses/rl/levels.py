"""How long a noisy series has been where it is: measures only, no thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Stay:
    """How a condition held lately: in what share of the last records, and from which index on without a break."""

    share: float
    onset: int


def stay_of(held: pl.Series, *, last: int) -> Stay:
    """Measure how a condition held over the last `last` records; the onset follows the last record where it did not."""
    tail = held.tail(last)
    share = float(tail.sum()) / max(1, tail.len())
    broken = (~held).arg_true()
    return Stay(share, int(broken[-1]) + 1 if broken.len() else 0)


def onset_of(raw: pl.Series, medians: pl.Series, *, last: int, window: int) -> int:
    """Index where a state began that now holds; `raw` and `medians` tell of each record whether it, its median is so.

    Breaks of the medians shorter than a fifth of `last` are bridged; the running median lags by half its window, so the
    first record of the window that is itself in the state is taken.
    """
    bridged = medians.cast(pl.Float64).rolling_mean(max(1, last // 2), min_samples=1, center=True) > 0.5
    start = stay_of(bridged, last=last).onset
    low = max(0, start - window + 1)
    own = raw.slice(low, window * 2).arg_true()
    return min(low + int(own[0]) if own.len() else start, raw.len() - 1)
