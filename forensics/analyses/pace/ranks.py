"""Finds the slow rank of a job: by its own times, or by how little it waits for the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.pace.edges import sharpest_edge
from forensics.analyses.pace.names import pace_of
from forensics.analyses.pace.parts import named
from forensics.case.series import keys_of, metric_rows
from forensics.case.steps import ordered
from forensics.patterns import lazily
from forensics.stats.spread import Floats, spread
from forensics.store.run import Run

_MS = lazily(r"(?i)(?:^|[/_. ])ms$|msec$")
_FEWEST_RANKS, _FEWEST_STEPS, _FEWEST_SLOW, _BLOCK = 2, 12, 8, 4
_FLOOR = 0.003  # spread over ranks below which no machine can be told from another, relative


#: A time of others that is below this share of what a rank takes longer is as good as none.
_NOTHING = 0.05


class Straggler(Struct, frozen=True):
    """A rank that stands out of `ranks`: `excess` over the median rank, relative (negative for waiting), and `z`.

    Where the others take next to no time, `excess` is a share of the step, or 1. `own` and `others` are the medians, as
    printed. `blocks` is the share of blocks of four steps in which it did; `last_like` the last step at which it was
    like the others, None where it never was; `rows` are its metric rows with `at` from the step on at which it began.
    """

    rank: int
    ranks: int
    excess: float
    z: float
    blocks: float
    waiting: bool
    last_like: int | None
    own: float
    others: float
    rows: pl.DataFrame


class Straggling(Struct, frozen=True):
    """Thresholds of SLO006, relative and in robust deviations over the ranks; `error` is a relative excess.

    `blocks` is the share of blocks of four steps in which the rank must be slow.
    """

    excess: float = 0.05
    z: float = 6.0
    blocks: float = 0.8
    error: float = 0.2


class _Times(Struct, frozen=True):
    """One time of all ranks: steps x ranks, the steps, and the median whole step in the same unit where it is known."""

    values: Floats
    steps: list[int]
    ranks: list[int]
    step_time: float | None
    last_like: int | None = None

    def after(self, first: int) -> _Times:
        """The part from a step on."""
        before = self.steps[first - 1] if first else None
        return _Times(self.values[first:], self.steps[first:], self.ranks, self.step_time, before)


def stragglers(run: Run, least: Straggling) -> Iterator[Straggler]:
    """Find ranks whose own time is `least.excess` longer, or whose waiting is shorter, than the median rank's.

    Where whole step times are printed too, the difference must be that share of a step as well.
    """
    ranked, known_value = pl.col("rank").is_not_null(), pl.col("value") >= 0
    timed = metric_rows(run, ranked & (pl.col("name") == "step_time_s")).filter(known_value)
    step_s = timed.select(pl.col("value").median()).collect().item()
    for parts, waiting in ((("own", "data"), False), (("waiting",), True)):
        names = list(dict.fromkeys(name for part in parts for name in named(run, part)))
        names += () if waiting else _gathered(run)
        if not names:
            continue
        timed = metric_rows(run, ranked & pl.col("raw_name").is_in(names))
        rows = (
            ordered(timed.filter(known_value & pl.col("value").is_finite()))
            .filter(pl.col("at").is_not_null())
            .collect()
        )
        for (name,), one in rows.group_by("raw_name", maintain_order=True):
            in_ms = _MS.search(str(name)) is not None and not str(one["name"][0]).endswith("_s")
            step = step_s if step_s is None or not in_ms else 1000 * step_s
            times = _by_rank(one, step)
            if times is not None:
                yield from _standing_out(one, times, least, waiting=waiting)


def _gathered(run: Run) -> list[str]:
    """Whole times that one source has of several ranks: they would be alike if they held the wait for each other."""
    printed = keys_of(run).select("name", "raw_name").unique().rows()
    paced = ((raw, pace_of(name or "", raw)) for name, raw in printed)
    whole = {raw for raw, pace in paced if pace is not None and pace.form in {"time", "anew"}}
    timed = keys_of(run).filter(pl.col("raw_name").is_in(whole))
    ranks = timed.group_by("source", "raw_name", maintain_order=True).agg(pl.col("rank").n_unique())
    return ranks.filter(pl.col("rank") >= _FEWEST_RANKS)["raw_name"].unique(maintain_order=True).to_list()


def _by_rank(rows: pl.DataFrame, step_time: float | None) -> _Times | None:
    """The steps that every rank has; None below two ranks or twelve steps."""
    one = rows.unique(["rank", "at"], keep="first", maintain_order=True)
    wide = one.pivot("rank", index="at", values="value", maintain_order=True).drop_nulls().sort("at")
    names = sorted((c for c in wide.columns if c != "at"), key=int)
    if len(names) < _FEWEST_RANKS or wide.height < _FEWEST_STEPS:
        return None
    values = wide.select(names).to_numpy().astype(np.float64)
    return _Times(values, wide["at"].to_list(), [int(n) for n in names], step_time)


def _standing_out(rows: pl.DataFrame, times: _Times, least: Straggling, *, waiting: bool) -> Iterator[Straggler]:
    for place in range(len(times.ranks)):
        begun = _begun(times, place, waiting=waiting)
        for first in (begun, 0) if begun else (0,):
            found = _judged(rows, times.after(first), place, least, waiting=waiting)
            if found is not None:
                yield found
                break


def _begun(times: _Times, place: int, *, waiting: bool) -> int:
    """Index of the step from which a rank's time differs from the others' most clearly; 0 for none."""
    others = np.median(np.delete(times.values, place, axis=1), axis=1)
    over = (-1.0 if waiting else 1.0) * (times.values[:, place] - others)
    cut = sharpest_edge(over, _FEWEST_SLOW)
    return cut if cut is not None and float(np.median(over[cut:])) > 2 * abs(float(np.median(over[:cut]))) else 0


def _judged(rows: pl.DataFrame, times: _Times, place: int, least: Straggling, *, waiting: bool) -> Straggler | None:
    sign = -1.0 if waiting else 1.0
    medians = np.median(times.values, axis=0)
    rest = np.delete(medians, place)
    own, middle = float(medians[place]), float(np.median(rest))
    more = sign * (own - middle)
    whole = middle if middle > _NOTHING * more else times.step_time or more
    if more <= 0 or more <= least.excess * max(whole, times.step_time or 0.0):
        return None
    count = len(times.values) // _BLOCK
    parts = np.median(times.values[: count * _BLOCK].reshape(count, _BLOCK, -1), axis=1)
    over = sign * (parts[:, place] - np.median(np.delete(parts, place, axis=1), axis=1))
    apart = spread(rest) if len(rest) > 1 else spread(over) / count**0.5
    far = more / max(apart, _FLOOR * max(middle, times.step_time or 0.0, _NOTHING * more))
    often = float(np.mean(over > least.excess / 2 * whole))
    if far <= least.z or often < least.blocks:
        return None
    rank = times.ranks[place]
    from_there = rows.filter((pl.col("rank") == rank) & (pl.col("at") >= times.steps[0]))
    excess = sign * more / whole
    return Straggler(
        rank, len(times.ranks), excess, float(far), often, waiting, times.last_like, own, middle, from_there
    )
