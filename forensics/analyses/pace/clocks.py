"""Every clock of a run that tells how fast it trained: seconds per step, per token or per sample, in order.

A clock is one series of one source, attempt and rank. Its times are made comparable: rates are inverted, running
clocks and timestamps differenced, averages since the start undone, steps turned into tokens where these are logged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from math import log10
from typing import Any

import numpy as np
import polars as pl

from forensics.analyses.pace.average import is_of_times, is_running_average, undone, undone_quantum
from forensics.analyses.pace.bars import bars
from forensics.analyses.pace.left import of_each_step
from forensics.analyses.pace.names import PaceName, pace_of
from forensics.analyses.pace.parts import seconds_of_parts
from forensics.analyses.pace.pauses import Flags, Steps, spikes
from forensics.analyses.pace.steady import resolution
from forensics.analyses.pace.work import per_work, work_of
from forensics.analyses.traces.steps import timed_steps
from forensics.case.checkpoints import known
from forensics.case.endings import ending
from forensics.case.processes.attempts import attempts
from forensics.case.series import chosen, holding, index_of, keys_of, metric_rows, standing_in
from forensics.case.steps import WRITER, first_of_each, only, ordered, where
from forensics.dialects.names import is_each_time, is_since_start
from forensics.io.columns import as_column
from forensics.stats.spread import Floats, each_once, median_of
from forensics.store.packed import PLACE, Packed
from forensics.store.run import Run, derived

_WALL = PaceName("wall", "step", 1.0, 99)
_PARTS = PaceName("parts", "step", 1.0, 98)
_BAR = PaceName("time", "step", 1.0, 150)  # behind every name, and every average that was taken apart
_LEFT = PaceName("time", "step", 1.0, 155)  # as a bar, and no time that was measured
_TRACE = PaceName("time", "step", 1.0, 160)  # behind these too: a trace is of few steps, and of a run that was watched
_UNNAMED = {"wall": "the time between records", "parts": "the sum of the parts of a step"}
#: A difference of so many ticks is right to 2.5, 6, 12 and 25 %; where fewer records are left than beside it the next
#: shows a change of level sooner. Of 30 slow logs of 36 to 200 records in whole seconds 7 are told, and 3 were without
#: the last two; of 60 even ones with evaluations and up to 30 % of noise none is.
_TICKS = ((40, 30), (16, 20), (8, 20), (4, 0))
_FREE = 2  # saves without a cost, which show that a save has none
_ALIKE = 0.9  # of the time of the fastest slow record beside a save: others that take as long are as slow
_HELD = ("at", PLACE, "lo", "pace")
_UNMARKED = pl.Series([False])
_Place = tuple[str, int, int | None]
_NEAR = 0.3  # tenfold powers: a factor of two either way still is a thousand


@dataclass(frozen=True, slots=True)
class Clock:
    """One series of times: rows with `at`, `passed` (steps since the record before), `pace` and `busy`.

    `busy` is `evaluated` or `saved`. `pace` is in seconds per `unit`; `quantum` the unit it was printed in, as seconds,
    0 when not known to be coarse. `notes` say what was done to it. Where there is a `table`, `PLACE` are the numbers of
    the metric rows in it; the rows of a bar are no metric rows, and have the columns of one themselves.
    """

    source: str
    attempt: int
    rank: int | None
    form: str
    unit: str
    order: int
    rows: pl.DataFrame
    quantum: float = 0.0
    notes: tuple[str, ...] = ()
    table: Packed | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Count the records."""
        return self.rows.height

    @property
    def name(self) -> str:
        """Give the name as it was printed; a time between records is that, whatever metric the records hold."""
        first = self.row(0)
        return _UNNAMED[self.form] if self.form in _UNNAMED else str(first["raw_name"] or first["name"])

    def row(self, index: int) -> dict[str, Any]:
        """Give the metric row of a record, with its columns here."""
        own = self.rows.row(index, named=True)
        return own if self.table is None else {**self.table.row(own[PLACE]), "attempt": self.attempt, **own}

    @property
    def is_printed(self) -> bool:
        """Whether each record prints the time itself: no rate, no mean and no difference of times."""
        return self.form == "time" and self.order < _PARTS.order

    @property
    def seconds(self) -> Floats:
        """Give the times, shape (n,)."""
        return self.rows["pace"].to_numpy()

    @property
    def steps(self) -> np.ndarray:
        """Give the steps of the records, shape (n,)."""
        return self.rows["at"].to_numpy()

    @property
    def resolution(self) -> float:
        """Give the printing unit over the median time."""
        return resolution(self.seconds, self.quantum) if len(self) else 0.0

    def calm(self) -> Clock:
        """Give the clock without records that an evaluation or a save made longer, unless most records are such.

        Saves that cost nothing at first are not why records at saves are slow later on, and neither saves nor
        evaluations are why records are slow of which most lie beside neither.
        """
        if not self.rows["busy"].any():
            return self
        logs = np.log(self.seconds)
        tall = spikes(logs).high(logs)
        explained = np.zeros(len(self), dtype=bool)
        for name in ("evaluated", "saved"):
            explained |= costly(self.rows[name].to_numpy(), tall)
        if not explained.any():
            return self
        alike = ~explained & (self.seconds >= _ALIKE * self.seconds[explained].min())
        if alike.sum() > explained.sum():
            return self
        rows = self.rows.filter(~as_column(explained))
        return self if 2 * rows.height < self.rows.height else replace(self, rows=rows)


@derived
def clocks(run: Run) -> tuple[Clock, ...]:
    """Give every clock of a run, by source, attempt and rank, the most trustworthy form first."""
    names = keys_of(run).select("name", "raw_name").unique(maintain_order=True)
    known = {pair: found for pair in names.iter_rows() if (found := pace_of(*pair)) is not None}
    busy, first_batches = _busy_steps(run), _first_batches(run)
    work = work_of(run)
    walls = [one for wall in _wall_clocks(run) for one in (wall, *per_work(wall, work))]
    named = list(_named_clocks(known, run, work))
    found = [
        *named,
        *_part_clocks(run, {(c.source, c.attempt, c.rank) for c in named}),
        *_bar_clocks(run),
        *_left_clocks(run),
        *_trace_clocks(run),
        *walls,
    ]
    marked = (_busy_marked(clock, busy, first_batches.get(clock.source, frozenset())) for clock in found)
    out = [clock for clock in marked if len(clock) >= 2]
    return tuple(sorted(out, key=lambda c: (c.source, c.attempt, -1 if c.rank is None else c.rank, c.order)))


def best_clocks(run: Run, *, fewest: int, coarsest: float = 0.025) -> Iterator[Clock]:
    """Give the clocks to judge of each source, attempt and rank: the best that it prints, and its time stamps.

    The best is the first that is long and fine enough, else the finest long one. Time stamps count what a printed step
    time leaves out, as waiting for data; they are given beside another clock where they are fine enough. A bar counts
    only where nothing else is printed, as it shows means.
    """
    groups: dict[tuple[str, int, int | None], list[Clock]] = {}
    for clock in clocks(run):
        groups.setdefault((clock.source, clock.attempt, clock.rank), []).append(clock)
    printed = any(len(c) >= fewest and c.order < _BAR.order and c.unit != "flop" for c in clocks(run))
    for group in groups.values():
        long = [c for c in group if len(c) >= fewest and not (printed and c.order >= _BAR.order)]
        if long:
            best = next((c for c in long if c.resolution <= coarsest), None)
            best = best if best is not None else min(long, key=lambda c: c.resolution)
            yield best
            yield from (c for c in long if c.form == "wall" and c is not best and c.resolution <= coarsest)


def _named_clocks(
    known: dict[tuple[str | None, str | None], PaceName], run: Run, work: pl.DataFrame
) -> Iterator[Clock]:
    running = dict(_by_place(run, pl.col("name") == "train_time_s"))
    for (name, raw), meaning in known.items():  # one after the other, as all together take the memory of all
        own = pl.col("name").eq_missing(pl.lit(name)) & pl.col("raw_name").eq_missing(pl.lit(raw))
        for place, rows in _by_place(run, own):
            clock = _clock_of(rows, meaning, place, index_of(run).table)
            if clock is not None:
                clock = rescaled(clock, running.get(place, rows.clear()))
                yield clock
                yield from per_work(clock, work)


def _part_clocks(run: Run, timed: AbstractSet[_Place]) -> Iterator[Clock]:
    """Clocks of records that print no time of the step but several of its parts: their sum, in the row of the first."""
    parts_of: dict[_Place, list[pl.DataFrame]] = {}
    for raw, factor in seconds_of_parts(run).items():
        for place, rows in _by_place(run, pl.col("raw_name") == raw):
            if place not in timed:
                own = first_of_each(rows, "at").with_columns(pl.col("value") * factor)
                parts_of.setdefault(place, []).append(own)
    for place, own in parts_of.items():
        if len(own) > 1:
            whole = (
                pl.concat(own)
                .group_by("at", maintain_order=True)
                .agg(pl.col(PLACE).first(), pl.col("value").sum(), pl.len())
            )
            whole = whole.filter(pl.col("len") == len(own)).drop("len").sort("at")
            if whole.height and (clock := _clock_of(whole, _PARTS, place, index_of(run).table)) is not None:
                yield replace(clock, notes=(*clock.notes, "the sum of the parts of a step"))


def _left_clocks(run: Run) -> Iterator[Clock]:
    """Clocks of the time until the last step, where the plan of the run is one of steps."""
    reach = ending(run).reach
    if reach.plan is None or reach.unit != "step":
        return
    to_come = holding(run, "time_to_come", "raw_name") & pl.col("name").str.ends_with("_seconds")
    for place, rows in _by_place(run, to_come):
        told = of_each_step(first_of_each(rows, "at"), reach.plan)
        clock = None if told is None else _clock_of(told[0], _LEFT, place, index_of(run).table)
        if told is not None and clock is not None:
            notes = (*clock.notes, "the time until the last step, over the steps that are left")
            yield replace(clock, quantum=max(clock.quantum, told[1]), notes=notes)


def _by_place(run: Run, own: pl.Expr) -> Iterator[tuple[_Place, pl.DataFrame]]:
    """The finite rows of some series with a step, of each source, attempt and rank: `at`, `PLACE` and `value`."""
    index = index_of(run)
    for place, every in _placed(run, own):
        rows = index.finite_at_steps(every)
        at, value = index.table.steps(rows).cast(pl.Int64).alias("at"), index.table.numbers("value", rows)
        yield place, pl.DataFrame([at, as_column(rows, PLACE), as_column(value, "value")])


def _placed(run: Run, own: pl.Expr) -> Iterable[tuple[_Place, list[int]]]:
    """The numbers of some series, by source, attempt and rank."""
    index, series = index_of(run), dict[_Place, list[int]]()
    keys = index.keys.select("source", pl.col("attempt").fill_null(0), "rank").rows()
    for i in np.flatnonzero(chosen(index, own)).tolist():
        series.setdefault(keys[i], []).append(i)
    return series.items()


def _clock_of(part: pl.DataFrame, meaning: PaceName, place: _Place, table: Packed) -> Clock | None:
    rows = first_of_each(part, "at")
    value, counts, notes, quantum = rows["value"].to_numpy() * meaning.scale, rows["at"].to_numpy(), (), 0.0
    if meaning.form in {"anew", "since"}:
        is_time = meaning.form == "anew" and is_each_time(value.tolist())
        form = "time" if is_time else "clock" if is_since_start(value.tolist()) else None
        if form is None:
            return None
        meaning = PaceName(form, meaning.unit, meaning.scale, meaning.order)
    if meaning.form in {"rate", "mean-rate"}:
        with np.errstate(divide="ignore"):
            value = 1 / value
    is_mean = meaning.form.startswith("mean") and is_of_times(value, counts)
    since_start = is_mean or (meaning.form != "clock" and is_running_average(value, counts))
    if since_start:
        quantum = undone_quantum(_printed_unit(value), counts)
        value, notes = undone(value, counts), ("an average since the start, taken apart",)
    if meaning.form == "clock":
        rows = rows.with_columns(t_ns=as_column(np.round(value * 1e9).astype(np.int64)))
        tick_s = _tick_s(rows["t_ns"].to_numpy())
        rows = _differences(_by_tick(rows, tick_s), (), table)
        quantum = tick_s / median_of((rows["at"] - rows["lo"]).to_numpy()) if rows.height else 0.0
    else:
        rows = _paced(rows, value[1:])
    if rows.height < 2:
        return None
    order = meaning.order + (100 if since_start else 0)
    return Clock(*place, meaning.form, meaning.unit, order, only(rows, *_HELD), quantum, notes, table)


def _paced(rows: pl.DataFrame, pace: Floats, within: Flags | None = None) -> pl.DataFrame:
    """Rows with the step before as `lo` and their `pace`: those behind another that took time, by steps that rise."""
    counts = rows["at"].to_numpy()
    wanted = (counts[1:] > counts[:-1]) & (pace > 0) & np.isfinite(pace)
    wanted = wanted if within is None else wanted & within
    beside = [rows["at"].head(len(pace)).alias("lo"), as_column(pace, "pace")]
    return where(rows.slice(1).hstack(beside), wanted)


def _printed_unit(values: Floats) -> float:
    """The unit that values are printed in, at the finest: the smallest difference of two of them."""
    gaps = np.diff(each_once(values))
    gaps = gaps[gaps > 1e-12 * max(1e-300, float(np.abs(values).max()))]
    return float(gaps.min()) if len(gaps) else 0.0


def _bar_clocks(run: Run) -> Iterator[Clock]:
    for rows, quantum in bars(run):
        if rows.height >= 2:
            first = rows.row(0, named=True)
            place = (str(first["source"]), int(first["attempt"]), first["rank"])
            yield Clock(*place, _BAR.form, _BAR.unit, _BAR.order, rows, quantum, ("a progress bar, taken apart",))


def _trace_clocks(run: Run) -> Iterator[Clock]:
    for rows in timed_steps(run):
        if rows.height >= 2:
            place = (str(rows["source"][0]), 0, rows["rank"][0])
            yield Clock(*place, _TRACE.form, _TRACE.unit, _TRACE.order, rows, notes=("the steps of profiler traces",))


def _wall_clocks(run: Run) -> Iterator[Clock]:
    """Clocks from the times of the records themselves, of the name that each source printed most often."""
    training = ~holding(run, "of_machine_or_evaluation")
    known = keys_of(run).filter(training & (pl.col("n_timed") > 0)).with_columns(pl.col("attempt").fill_null(0))
    counts = known.group_by(*WRITER, "raw_name", maintain_order=True).agg(pl.col("n_timed").sum())
    tops = counts.sort("n_timed", descending=True, maintain_order=True).unique(WRITER, keep="first")
    tried, index = attempts(run).cuts, index_of(run)
    for place, own in _placed(run, training & standing_in(run, tops.select(*WRITER, "raw_name"))):
        rows = index.records(own)
        times = [index.table.steps(rows).cast(pl.Int64).alias("at"), index.table.short("t_ns", rows).cast(pl.Int64)]
        one = pl.DataFrame([*times, as_column(rows, PLACE)])
        if any(column.null_count() for column in times):  # of many ranks each query counts
            one = one.drop_nulls()
        one = first_of_each(one, "at")
        tick_s = _tick_s(one["t_ns"].to_numpy())
        cuts = [cut.seq for cut in tried.get(place[0], ()) if cut.seq >= 0]
        rows = only(_differences(_by_tick(one, tick_s), cuts, index.table), *_HELD)
        if rows.height >= 2:
            tick = tick_s / median_of((rows["at"] - rows["lo"]).to_numpy())
            notes = ("differences of timestamps",)
            yield Clock(*place, _WALL.form, _WALL.unit, _WALL.order, rows, tick, notes, index.table)


def _by_tick(rows: pl.DataFrame, tick_s: float) -> pl.DataFrame:
    """One row for each forty ticks, where most rows are closer: a difference of fewer ticks is mostly rounding."""
    times_ns = rows["t_ns"].to_numpy()
    found, usual_ns = rows, median_of(np.diff(times_ns))
    for ticks, enough in _TICKS:
        least_ns = ticks * tick_s * 1e9
        if rows.height < 2 or usual_ns >= least_ns:
            return rows
        spans = np.floor((times_ns - times_ns.min()) / least_ns)
        found = where(rows, np.diff(spans, prepend=-1.0) != 0)
        if found.height >= enough:
            break
    return found


def _differences(rows: pl.DataFrame, cuts: Sequence[int], table: Packed) -> pl.DataFrame:
    """Seconds per step between neighbours; the time between two attempts, which begin at `cuts`, is none of a step."""
    with np.errstate(divide="ignore", invalid="ignore"):
        took_s = np.diff(rows["t_ns"].to_numpy()) / 1e9 / np.diff(rows["at"].to_numpy())
    seqs = table.numbers("seq", rows[PLACE].to_numpy()) if cuts else None
    within = None if seqs is None else np.diff(np.searchsorted(sorted(cuts), seqs, "right")) == 0
    return _paced(rows, took_s, within)


def _tick_s(times_ns: np.ndarray) -> float:
    """Coarseness of timestamps: the largest power of ten, up to a minute, that divides all of them."""
    for tick in (60_000_000_000, 1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000):
        if not (times_ns % tick).any():
            return tick / 1e9
    return 0.0


def _busy_marked(clock: Clock, busy: Mapping[str, Steps], first_batches: AbstractSet[int]) -> Clock:
    """Add `evaluated` and `saved`: such a step is between the record before and this one, both included.

    The line of a step is printed before or after what is done at that step, and a sample of one step may hold it. A
    time that is printed at the first batch of an epoch is of that batch: meters begin anew with an epoch.
    """
    lows, ats = clock.rows["lo"], clock.rows["at"]
    passed = (ats - lows).alias("passed").shrink_dtype()
    if first_batches and clock.form == "time" and clock.table is not None:
        lines = clock.table.short("line", clock.rows[PLACE].to_numpy())
        passed = passed.set(lines.is_in(list(first_batches)), 1)
    if any(map(len, busy.values())):
        lows, ats = (lows.fill_null(ats) if lows.null_count() else lows).to_numpy(), ats.to_numpy()
        marks = {n: np.searchsorted(s, lows, "left") != np.searchsorted(s, ats, "right") for n, s in busy.items()}
        marks["busy"] = marks["evaluated"] | marks["saved"]
        beside = [as_column(held, name) for name, held in marks.items()]
    else:  # a run of many ranks has many clocks
        beside = [_UNMARKED.new_from_index(0, len(clock)).alias(name) for name in (*busy, "busy")]
    kept = only(clock.rows, *(name for name in clock.rows.columns if name != "lo"))
    return replace(clock, rows=kept.hstack([passed, *beside]))


def _busy_steps(run: Run) -> dict[str, Steps]:
    """Steps, sorted, at which any source of the run evaluated, and at which one saved, be it seen on disk only."""
    evals = ordered(metric_rows(run, pl.col("name").str.starts_with("eval"))).select("at")
    told = run.scan("checkpoints").filter(pl.col("kind").is_in(["saved", "committed"])).select(at="step")
    saves = pl.concat([told, known(run).lazy().select(at="step")])
    return {
        name: rows.drop_nulls().unique().sort("at").collect()["at"].to_numpy()
        for name, rows in (("evaluated", evals), ("saved", saves))
    }


def _first_batches(run: Run) -> dict[str, frozenset[int]]:
    """The lines, by source, that print the first batch of an epoch."""
    if "progress" not in run.frames:
        return {}
    first = run.scan("progress").filter((pl.col("unit") == "batch") & (pl.col("done") <= 1) & (pl.col("plan") > 1))
    lines = first.select("source", "line").drop_nulls().unique().collect()
    return {source: frozenset(own["line"].to_list()) for (source,), own in lines.group_by("source")}


def costly(marked: Flags, tall: Flags) -> Flags:
    """Flag the tall ones among marked records; none where the first two runs of marked neighbours hold no tall one."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(np.int8), [0]]))).reshape(-1, 2)
    slow = [bool(tall[first:end].any()) for first, end in edges]
    free = slow.index(True) if any(slow) else 0
    return marked & tall if free < _FREE else np.zeros(len(tall), dtype=bool)


# Milliseconds that were printed under the name of seconds: found from the other columns of the same log.


def rescaled(clock: Clock, rows: pl.DataFrame) -> Clock:
    """Give a clock of times per step in seconds: a factor of 1000 against what the log otherwise tells is undone.

    The reference is the running clock, whose `rows` these are, else the timestamps.
    """
    if clock.form != "time":
        return clock
    known = _per_step(rows["at"], rows["value"])
    if known is None:
        times = clock.rows["t_ns"] if clock.table is None else clock.table.gather("t_ns", clock.rows[PLACE].to_numpy())
        known = _per_step(clock.rows["at"], times / 1e9)
    typical = _median(clock.rows["pace"])
    if known is None or typical is None:
        return clock
    tenfold = log10(typical / known)
    factor = next((f for f in (1e-3, 1e3, 1e-6) if abs(tenfold + log10(f)) < _NEAR), None)
    if factor is None:
        return clock
    unit = {1e-3: "milliseconds", 1e3: "thousands of seconds", 1e-6: "microseconds"}[factor]
    paced = clock.rows.with_columns(pl.col("pace") * factor)
    return replace(clock, rows=paced, quantum=clock.quantum * factor, notes=(*clock.notes, f"printed in {unit}"))


def _per_step(at: pl.Series, seconds: pl.Series) -> float | None:
    passed, took = at.diff(), seconds.diff()
    return _median((took / passed).filter((passed > 0) & (took > 0)))


def _median(values: pl.Series) -> float | None:
    found = values.drop_nulls().median()
    return float(found) if isinstance(found, int | float) and found > 0 else None
