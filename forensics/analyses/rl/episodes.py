"""Whether the reward of an environment's episodes fell from its level, and stayed down."""

from __future__ import annotations

from math import sqrt

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.rl.series import RlSeries
from forensics.stats.spread import Floats, median_of, scatter
from forensics.stats.trend import trend_of


class Episodes(Struct, frozen=True):
    """Thresholds of RLX012.

    A level is the median of a tenth of the records, the last one that of a fifth. A reward that rose, and whose best
    level is `gain` of its size above its start or its end, has collapsed where it lost `lost` of what it had gained,
    and nothing of the last fifth came back. One that never rose has fallen where Kendall's z over the run is beyond
    `trend_z`, by `gain` of its size. Either fall is larger than `sigmas` errors of a level, and than `over_waves` times
    the largest one before it that came back.
    Of fewer than `many` records, either the last `few` or more fall one by one, or `shown` at the end are within `end`
    of the start's level, of which the records around the peak were as near to the best.
    Of twice `many` records, the last tenth may show alone that `late` of the gain is lost.
    A policy whose entropy ends below `spent` of its begin cannot find back: then `stuck` is in the place of `lost`.

    Of 3,000 made rewards of each kind, 6 to 1,500 records long, that rise, rise late or dip 0.02 % pass, of those that
    stay at a level with noise of up to 15 %, which may be near zero, 1.6 %; of those that collapse 83 % (97 % of 20
    records or more), of those that fall from the start 97 %. The last tenth finds 15 % more of those that collapse
    anywhere before 0.88 of the run (647 of 700 instead of 541), and passes none more of 3,500 others.
    """

    few: int = 5
    shown: int = 3
    end: float = 0.3
    many: int = 20
    gain: float = 0.25
    lost: float = 0.6
    late: float = 0.85
    trend_z: float = 5.0
    sigmas: float = 5.0
    over_waves: float = 2.5
    stuck: float = 0.25
    spent: float = 0.05


class Fall(Struct, frozen=True):
    """A fall: `best` and `last` levels, the positions of the best one and of where it left for good."""

    series: RlSeries
    best: float
    last: float
    peak: int
    onset: int
    rose: bool


def fall_of(series: RlSeries, cfg: Episodes) -> Fall | None:
    """Find the fall of one reward; None where it stays, rises, or is too short to tell."""
    values = series.finite["value"].to_numpy()
    n = len(values)
    if n < cfg.few:
        return None
    peak, rose = _few(values, cfg) if n < cfg.many else _many(values, cfg)
    if peak is None:
        return None
    width = max(1, n // 10) if n >= cfg.many else 1
    best = median_of(values[max(0, peak - width + 1) : peak + 1])
    last = median_of(values[-max(1, n // 5) :])
    above = np.flatnonzero(values[peak:] > (best + last) / 2)
    onset = min(peak + int(above[-1]) + 1 if len(above) else peak, n - 1)
    return Fall(series, best, last, peak, onset, rose)


def is_stuck(entropy: RlSeries, cfg: Episodes) -> bool:
    """Whether an entropy that was above zero fell to next to nothing: the policy does the same thing every time."""
    values = entropy.finite["value"].to_numpy()
    if len(values) < cfg.many or values.min() < 0:
        return False
    return median_of(values[-(len(values) // 5) :]) < cfg.spent * median_of(values[: len(values) // 10])


def _few(values: Floats, cfg: Episodes) -> tuple[int | None, bool]:
    """The peak of few records that fall one by one from it, or that stay low behind several high ones."""
    peak, start = int(np.argmax(values)), float(values[0])
    tail, best = values[peak:], float(values[peak])
    if len(tail) >= cfg.few and bool((np.diff(tail) < 0).all()) and _size(best, tail[-1]) >= cfg.gain:
        return peak, peak > 0
    gained = best - start
    high, low = best - cfg.end * gained, start + cfg.end * gained
    is_up = bool((values[max(0, peak - 1) : peak + 2] >= high).sum() >= cfg.shown - 1)
    is_down = bool((values[-cfg.shown :] <= low).all())
    return (peak, True) if is_up and is_down and _size(best, start) >= cfg.gain and gained > 0 else (None, False)


def _many(values: Floats, cfg: Episodes) -> tuple[int | None, bool]:
    """The peak of a level that was lost, if it was."""
    n = len(values)
    peak, rose = _by_tail(values, cfg, n // 5, cfg.lost)
    return _by_tail(values, cfg, n // 10, cfg.late) if peak is None and n >= 2 * cfg.many else (peak, rose)


def _by_tail(values: Floats, cfg: Episodes, tail: int, share: float) -> tuple[int | None, bool]:
    """The peak of a level of whose gain so much is lost in every record of the tail."""
    n = len(values)
    width = max(3, n // 10)
    levels = pl.Series(values).rolling_median(width)[width - 1 :].to_numpy()
    noise = scatter(values[width - 1 :] - levels) / sqrt(width)
    top = int(np.argmax(levels))
    best, start, last = float(levels[top]), median_of(values[:width]), median_of(values[-tail:])
    lost, gained = best - float(levels[-tail:].max()), best - start
    if best - last < cfg.sigmas * noise or top + width > n - tail:
        return None, False
    if _size(best, min(start, last)) >= cfg.gain and gained > cfg.sigmas * noise and lost >= share * gained:
        return (top + width - 1, True) if lost > cfg.over_waves * _fallback(levels[: top + 1]) else (None, False)
    trend = trend_of(values)
    falls = trend is not None and trend.z < -cfg.trend_z and _size(start, last) >= cfg.gain
    falls = falls and start - last > cfg.over_waves * _fallback(-levels)
    return (int(np.argmax(values[:width])), False) if falls else (None, False)


def _fallback(levels: Floats) -> float:
    """The largest fall from the highest level so far."""
    return float((np.maximum.accumulate(levels) - levels).max())


def _size(a: float, b: float) -> float:
    """How large a difference is beside the larger of the two."""
    return abs(a - b) / max(abs(a), abs(b), 1e-9)
