"""Whether a series of reinforcement learning is outside its range, and since when; whether the reward rose."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import polars as pl
from msgspec import Struct

from forensics.analyses.rl.series import RlSeries
from forensics.knowledge.ranges import Range
from forensics.stats.spread import median, relative_spread
from forensics.stats.trend import trend_of
from forensics.values import replace


class Persistence(Struct, frozen=True):
    """How long a state must last before it is one: no single point ever is.

    `window` records make a running median, which must be beyond the bound in a share `held` of the last `last` records;
    measured on seeded noise, this fires on less than 1 % of healthy series, any single point beyond the bound on more
    than a third. Of fewer records than `last` only a value that cannot be chance decides: one that each of the last
    `few` has, and `most_of_few` of all. `trend_z` is the z of Kendall's test over equal parts from which a trend is
    taken for proven.
    """

    window: int = 10
    last: int = 20
    few: int = 5
    most_of_few: float = 0.8
    held: float = 0.8
    most: float = 0.5
    trend_z: float = 4.0


#: What comes three times in a half comes regularly.
_REGULAR = 3
#: Standard errors by which a reward's last fifth must exceed its first to have risen.
_RISEN = 3.0


class Hit(Struct, frozen=True):
    """A row that holds of a series: whether red, since which of the finite rows, and the levels at start and end.

    `few` is whether it rests on a few records alone.
    """

    row: Range
    series: RlSeries
    rows: pl.DataFrame
    red: bool
    onset: int
    first: float
    last: float
    share: float
    few: bool = False


def judge(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """Judge a series by a row of the table; None for a row of another quantity, and for a healthy or short series."""
    if series.quantity != row.quantity:
        return None
    rows = series.finite
    if rows.height < cfg.last:
        return _of_few(series, row, cfg) if row.test == "all" else None
    return _of_many(series, row, cfg) if _last_step(rows) > row.from_step else None


def _of_many(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    if row.unless and _trending(series, replace(row, test=row.unless), cfg) is not None:
        return None
    match row.test:
        case "rise" | "fall":
            return _trending(series, row, cfg)
        case "often":
            return _often(series, row)
        case "spread":
            return _spread(series, row, cfg)
        case _:
            return _staying(series, row, cfg)


def _staying(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """A level, or every single value, that has been beyond a bound lately."""
    values = series.finite["value"]
    medians = values.rolling_median(1 if row.test in {"all", "share"} else cfg.window, min_samples=1)
    for red in (True, False):
        held = _beyond(row, medians, red=red)
        raw = _beyond(row, values, red=red)
        stay = stay_of(held, last=cfg.last)
        if stay.share >= {"all": 1.0, "share": cfg.most}.get(row.test, cfg.held):
            onset = stay.onset if row.test == "all" else onset_of(raw, held, last=cfg.last, window=cfg.window)
            return hit_of(series, row, onset, red=red, share=stay.share)
    return None


def _of_few(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """A value that all of the last few records have, and most of all; where the log holds no more."""
    beyond = _beyond(row, series.finite["value"], red=True)
    stay = stay_of(beyond, last=cfg.few)
    fits = beyond.len() >= cfg.few and stay.share == 1.0 and float(beyond.mean() or 0.0) >= cfg.most_of_few  # type: ignore[arg-type] - a column of booleans
    return replace(hit_of(series, row, stay.onset, red=True, share=1.0), few=True) if fits else None


def _spread(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """A last half that swings by more than its own size."""
    values = series.finite["value"]
    half = values.tail(values.len() // 2)
    wide = half.len() >= cfg.last and relative_spread(half) > (row.red or 0.0)
    return hit_of(series, row, values.len() - half.len(), red=True, share=1.0) if wide else None


def _often(series: RlSeries, row: Range) -> Hit | None:
    """Single records beyond the bound, more of them in the last half than a share; no level of any length."""
    beyond = _beyond(row, series.finite["value"], red=True)
    late = beyond.tail(beyond.len() // 2)
    count = int(late.sum())
    if count < _REGULAR or count <= row.share * late.len():
        return None
    return hit_of(series, row, int(beyond.arg_true()[0]), red=True, share=count / late.len())


def _trending(series: RlSeries, row: Range, cfg: Persistence) -> Hit | None:
    """A trend in the wrong direction over the last half of the series."""
    values = series.finite["value"]
    half = values.tail(values.len() // 2)
    trend = trend_of(half.to_numpy())
    if trend is None or half.len() < 2 * cfg.last:
        return None
    signed = trend.z if row.test == "rise" else -trend.z
    if signed < cfg.trend_z or abs(trend.last - trend.first) < 2 * trend.noise:
        return None
    onset = values.len() - half.len() + left_at(half, cfg.window)
    return hit_of(series, row, onset, red=True, share=abs(trend.tau))


def hit_of(series: RlSeries, row: Range, onset: int, *, red: bool, share: float) -> Hit:
    """Give the hit of a row in a series from a finite row on, with the medians of its first and last fifth."""
    rows = series.finite
    fifth = max(1, rows.height // 5)
    first, last = median(rows["value"].head(fifth)), median(rows["value"].tail(fifth))
    return Hit(row, series, rows, red, min(onset, rows.height - 1), first, last, share)


def _last_step(rows: pl.DataFrame) -> float:
    last = rows["at"].max()
    return float(last) if isinstance(last, int) else float(rows.height)


def _beyond(row: Range, values: pl.Series, *, red: bool) -> pl.Series:
    """Flag the values that raise the red flag, or are outside the healthy range."""
    if not red:
        return (values < row.lo) | (values > row.hi)
    bound = 0.0 if row.red is None else row.red
    if row.op == "==":
        return values.abs() <= max(abs(bound), 1.0) * 1e-9 if not bound else values == bound
    return {">": values > bound, ">=": values >= bound, "<": values < bound}.get(row.op, values.is_null())


def rewards_of(every: Iterable[RlSeries]) -> list[RlSeries]:
    """Give the total rewards, or the rewards of single functions where no total is logged."""
    known = list(every)
    return [s for s in known if s.quantity == "reward"] or [s for s in known if s.quantity == "reward_fn"]


def risen(rewards: Iterable[RlSeries]) -> bool | None:
    """Whether a reward's last fifth is clearly above its first; None when no reward is long enough to tell."""
    gains = [gain for series in rewards if (gain := gain_of(series)) is not None]
    return any(size > _RISEN * error for size, error in gains) if gains else None


def gain_of(series: RlSeries) -> tuple[float, float] | None:
    """By how much a series' last fifth is above its first, and the standard error of that; None for a short one."""
    values = series.finite["value"]
    fifth = values.len() // 5
    if fifth < 4:
        return None
    first, last = values.head(fifth), values.tail(fifth)
    return median(last) - median(first), max((_deviation(first) + _deviation(last)) / sqrt(fifth), 1e-9)


def _deviation(values: pl.Series) -> float:
    found = values.std()
    return found if isinstance(found, float) else 0.0


#: A course turns where it leaves this share of its way behind for good; what goes all along does so after as much of
#: its records, and takes three fifths of them to this share from the end. What turns comes there later, or sooner.
_WAY, _TURN = 0.2, 0.3


def left_at(values: pl.Series, window: int) -> int:
    """Index at which a course turned away from its first level for good; 0 where it went all along."""
    tenth = max(1, values.len() // 10)
    first, last = median(values.head(tenth)), median(values.tail(tenth))
    medians = values.rolling_median(window, min_samples=1)
    own, level = ((one - first) * (last - first) for one in (values, medians))
    marks = (share * (last - first) ** 2 for share in (_WAY, 1 - _WAY))
    onset, end = (onset_of(own > mark, level > mark, last=window, window=window) for mark in marks)
    turn = _TURN * values.len()
    return onset if onset > turn or end - onset < turn else 0


# How long a noisy series has been where it is: measures only, no thresholds.


class Stay(Struct, frozen=True):
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
