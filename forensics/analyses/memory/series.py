"""The memory series of a run: meaning, shape over the steps, and the step at which the device would be full.

One series is one printed name of one rank, in one attempt of one source. Steps are the file's own, or records where
none are printed. A peak, a cache or a device total that never comes down again is judged as a running maximum, because
that is how one that was never reset looks, and less is claimed of it. Where the same records print allocated and
reserved memory, their difference is judged too: a leak makes `allocated` grow, fragmentation the difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.memory.capacity import Capacity, capacity_of
from forensics.analyses.memory.kinds import GAPS, MEANINGS, Meaning
from forensics.analyses.memory.shape import ABSURD, QUANTUM_GIB, Form, form_of
from forensics.case.series import Index, index_of
from forensics.case.steps import rises, step_of
from forensics.io.columns import as_column
from forensics.patterns import lazily
from forensics.stats.spread import Floats, each_once
from forensics.stats.trend import line_of
from forensics.store.packed import Packed
from forensics.store.run import Run, derived
from forensics.values import replace

Kind = Literal["instant", "interval peak", "cumulative peak", "peak", "cache"]
#: Source, rank, attempt and printed name.
_Own = tuple[str, int | None, int, str]
#: Folder, rank, attempt and device.
_Beside = tuple[str, int | None, int, int | None]
#: So many series are judged at most, those with most records first.
_MOST_SERIES = 512
_DEVICE = lazily(r"gpu[._/ ]?(\d{1,3})[._/ ]", re.IGNORECASE)
#: Printed values are told from exact ones by so many distinct values, decimals and digits in all.
_DISTINCT, _DECIMALS, _LONGEST = 2000, 4, 1e6
#: GiB, MiB (which the MB of detectron2 are, scaled by 1.024e9) and GB of powers of ten, of which MB are three decimals.
_UNITS = (1.0, 1 / 1024, 1e9 / 2**30)
_ROUNDING = 1e-7
_CLIMBED = 1.5


# When a growing series meets the end of the memory: an interval of steps, or nothing.

#: Growth that differs more than this between parts of the series cannot be projected.
_UNEVEN = 5.0


class Reach(Struct, frozen=True):
    """Between which steps the memory would be full; `exact_room` is whether what others hold was measured.

    `at_the_latest` is set when only allocated memory was logged: what the allocator reserves is more, and ends sooner.
    """

    low: float
    high: float
    at_the_latest: bool = False


def reach_of(form: Form, x: Floats, y: Floats, room: tuple[float, float] | None) -> Reach | None:
    """Project a slope or a staircase to its end: the slopes of the last half, the last two thirds and the whole.

    Flat, plateau, unresolved and falling series give None, and so do slopes that differ too much.
    """
    if form.kind not in {"slope", "staircase"} or form.rise <= 0 or room is None:
        return None
    start = form.onset if form.onset is not None and len(y) - form.onset >= 16 and form.kind == "slope" else form.warmup
    x, y = x[start:], y[start:]
    n = len(y)
    slopes = sorted(line_of(x[cut:], y[cut:]).rise for cut in (0, n // 3, n // 2))
    if form.kind == "staircase" and form.height and form.period:
        slopes = sorted([*slopes, form.height / form.period])
    slopes = [s for s in slopes if s > 0]
    if len(slopes) < 2 or slopes[-1] > _UNEVEN * slopes[0]:
        return None
    now = float(y[-max(1, n // 20) :].max())
    lowest, highest = max(room[0] - now, 0.0), max(room[1] - now, 0.0)
    last = float(x[-1])
    return Reach(last + lowest / slopes[-1], last + highest / slopes[0])


@dataclass(frozen=True, slots=True)
class Series:
    """One memory series: `x` are steps (`by_step`) or records, `y` GiB or per cent.

    `kind` is how the number came about; `printed` is the unit of its last digit (0 when exact). `gap` is the shape of
    reserved less allocated memory where both are known. `capacity` is the size of the device or host in the same unit,
    None when unknown, and `reach` where the growth would meet it. `places` are the numbers of its rows in `table`, from
    which numbers are taken when they are asked for: mostly nobody asks again once the shape is known.
    """

    source: str
    attempt: int
    rank: int | None
    device: int | None
    name: str
    raw_name: str
    meaning: Meaning
    kind: Kind
    by_step: bool
    places: NDArray[np.integer[Any]] = field(repr=False)
    table: Packed = field(repr=False)
    form: Form
    printed: float = 0.0
    gap: Form | None = None
    gap_first: float | None = None
    gap_last: float | None = None
    capacity: float | None = None
    reach: Reach | None = None

    @property
    def x(self) -> Floats:
        """The steps, or the numbers of the records."""
        if self.by_step:
            return self.table.steps(self.places).to_numpy().astype(np.float64)
        return np.arange(len(self.places), dtype=np.float64)

    @property
    def y(self) -> Floats:
        """The meaning of its numbers."""
        return self.table.numbers("value", self.places)

    @property
    def rows(self) -> pl.DataFrame:
        """The records: `seq`, `at` and `value`."""
        seq, at = self.table.gather("seq", self.places), self.table.steps(self.places).alias("at")
        return pl.DataFrame([seq, at, as_column(self.y, "value")])

    def row(self, index: int) -> dict[str, Any]:
        """Give the metric row of one sample."""
        row = self.table.row(int(self.places[index]))
        return {**row, "attempt": self.attempt, "at": step_of(row)}

    def step(self, index: int | None) -> int | None:
        """Give the step of one sample, None where steps are not printed."""
        return int(self.x[index]) if index is not None and self.by_step else None

    @property
    def peak(self) -> float:
        """The worst value: the largest, or the smallest of free memory."""
        return float(self.y.min() if self.meaning.falls else self.y.max())

    @property
    def gap_climbs(self) -> bool:
        """Whether reserved, unused memory rises for good: by its shape, and to half as much again or more."""
        if self.gap is None or self.gap_first is None or self.gap_last is None:
            return False
        return self.gap.grows and self.gap_last >= _CLIMBED * self.gap_first

    @property
    def share(self) -> float | None:
        """The worst value as a share of the device; None when its size is unknown."""
        if self.meaning.unit == "%":
            return self.peak / 100
        if not self.capacity:
            return None
        return 1 - self.peak / self.capacity if self.meaning.falls else self.peak / self.capacity


@derived
def series_of(run: Run) -> tuple[Series, ...]:
    """Every memory series of a run with at least one finite value, by source, rank, attempt and name."""
    index, every = index_of(run), list[tuple[_Own, NDArray[np.integer[Any]]]]()
    for own, series in _series_of(index).items():
        rows = index.records(series)
        rows = rows[np.abs(index.table.numbers("value", rows)) < ABSURD]
        if len(rows):
            every.append((own, rows))
    if not every:
        return ()
    every.sort(key=lambda pair: tuple((part is not None, part) for part in pair[0]))  # the unknown ones first
    fewest = sorted((len(rows) for _, rows in every), reverse=True)[:_MOST_SERIES][-1]
    capacity = capacity_of(run)
    kept = [(own, rows) for own, rows in every if len(rows) >= fewest][:_MOST_SERIES]
    made = [_one(own, rows, capacity, index.table) for own, rows in kept]
    beside: dict[tuple[_Beside, str], list[Series]] = {}
    for one in made:
        beside.setdefault((_beside_of(one), one.meaning.quantity), []).append(one)
    return tuple(_with_gap(one, _partner(one, beside), capacity) for one in made)


def _series_of(index: Index) -> dict[_Own, list[int]]:
    """Which of the index's series belong to each memory series, by its source, rank, attempt and printed name."""
    found: dict[_Own, list[int]] = {}
    for i, key in enumerate(index.keys.select("source", "rank", "attempt", "raw_name", "name").iter_rows()):
        if key[4] in MEANINGS:
            found.setdefault((key[0], key[1], key[2] or 0, key[3]), []).append(i)
    return found


def _one(own: _Own, places: NDArray[np.integer[Any]], capacity: Capacity, table: Packed) -> Series:
    steps = table.steps(places)
    by_step = not steps.null_count()
    # a step that is printed twice, as by several lines of one report, is judged by its last record
    if by_step and not rises(steps):
        known, last = np.unique(steps.to_numpy()[::-1], return_index=True)
        steps, places = as_column(known), places[len(places) - 1 - last]
    (source, rank, attempt, raw_name), name = own, str(table.value("name", int(places[0])))
    meaning, y = MEANINGS[name], table.numbers("value", places)
    kind, printed = _kind(meaning, y), printed_unit(y)
    x = steps.to_numpy().astype(np.float64) if by_step else np.arange(len(places), dtype=np.float64)
    upward = -y if meaning.falls else y
    device = _DEVICE.search(raw_name)
    quantum = QUANTUM_GIB if meaning.unit == "GiB" else 0.01
    form = form_of(x, upward, quantum=quantum, printed=printed, cumulative=kind in {"cumulative peak", "cache"})
    return Series(
        source, attempt, rank, int(device[1]) if device else None, name, raw_name, meaning, kind, by_step,
        places, table, form, printed, capacity=capacity.of(meaning),
    )  # fmt: skip


def _kind(meaning: Meaning, y: Floats) -> Kind:
    moves = np.subtract(y[1:], y[:-1])
    fell, rose = bool((moves < 0).any()), bool((moves > 0).any())
    if meaning.is_peak:
        return "interval peak" if fell else "cumulative peak" if rose else "peak"
    may_only_rise = meaning.quantity in {"reserved", "used", "rss"} and rose and not fell
    return "cache" if may_only_rise and not meaning.falls else "instant"


def printed_unit(y: Floats) -> float:
    """Guess the unit of the last printed digit, as stored; 0 when the values look exact.

    Values that were printed in decimal are whole multiples of a power of ten in some unit of memory.
    """
    distinct = each_once(np.abs(y))[:_DISTINCT]
    if len(distinct) < 2:
        return 0.0
    apart = float(np.diff(distinct).min())
    for unit in _UNITS:
        for digits in range(_DECIMALS + 1):
            step = unit / 10**digits
            if step < QUANTUM_GIB / 64 or step > distinct[-1] or distinct[-1] / step > _LONGEST:
                continue
            whole: Floats = distinct / step
            if float(np.abs(whole - np.rint(whole)).max()) <= _ROUNDING * max(1.0, float(whole[-1])):
                return min(step, apart)
    return 0.0


def _with_gap(one: Series, partner: Series | None, capacity: Capacity) -> Series:
    """Add the shape of reserved less allocated memory, and the step at which reserved memory would be full."""
    # of the two the one that counts what the allocator holds meets the end first
    held = partner if partner is not None and one.meaning.quantity in {low for low, _ in GAPS} else one
    reach = reach_of(held.form, held.x, held.y, capacity.room(held.meaning)) if held.form.grows else None
    if reach is not None and held.meaning.quantity in {"allocated", "peak_allocated"}:
        reach = replace(reach, at_the_latest=True)
    if partner is None:
        return replace(one, reach=reach)
    low, high = (one, partner) if held is partner else (partner, one)
    joined = _beside(low, high, "seq") if low.source == high.source else pl.DataFrame()
    if joined.is_empty() and low.by_step and high.by_step:
        joined = _beside(low, high, "at")  # an event file has a record for each number of a step
    if joined.is_empty():
        return replace(one, reach=reach)
    x = joined["at"].to_numpy().astype(np.float64) if low.by_step else np.arange(joined.height, dtype=np.float64)
    gap = (joined["high"] - joined["low"]).to_numpy().astype(np.float64)
    edge = max(1, len(gap) // 10)
    return replace(
        one,
        gap=form_of(x, gap, printed=low.printed + high.printed),
        gap_first=float(np.median(gap[:edge])),
        gap_last=float(np.median(gap[-edge:])),
        reach=reach,
    )


def _beside(low: Series, high: Series, key: str) -> pl.DataFrame:
    """The values of two series that share a record, or a step: seq, at, low, high."""
    values = high.rows.select(key, pl.col("value").alias("high"))
    return low.rows.select("seq", "at", pl.col("value").alias("low")).join(values, on=key, maintain_order="left")


def _beside_of(one: Series) -> _Beside:
    """The key that a series and its other half share: a store may keep a file for each metric, in one folder."""
    return one.source.rpartition("/")[0], one.rank, one.attempt, one.device


def _partner(one: Series, beside: Mapping[tuple[_Beside, str], Sequence[Series]]) -> Series | None:
    """Its other half, of the same source first; `beside` are those of a folder by their quantities."""
    wanted = [b for low, high in GAPS for a, b in ((low, high), (high, low)) if a == one.meaning.quantity]
    near = next((found for quantity in wanted if (found := beside.get((_beside_of(one), quantity)))), ())
    return min(near, key=lambda other: other.source != one.source, default=None)
