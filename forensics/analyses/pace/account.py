"""The account of a run's time: for each clock its change, the cost of single pauses, and their gravity.

Time is lost against the best level that held before. The size of a loss and how far it stands out of the noise say how
grave it is; its form (a jump, a ramp, pauses) gives only the words.
"""

from __future__ import annotations

from math import inf, log
from typing import Literal

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.change import Change, Form, change_of
from forensics.analyses.pace.clocks import Clock, best_clocks, clocks
from forensics.analyses.pace.pauses import Comb, Flags, Steps
from forensics.analyses.pace.steady import FEWEST, SHORTEST, Steady, steady
from forensics.case.trainers import trainers_by_source
from forensics.case.world import devices_told
from forensics.stats.spread import Floats, median_of, quantiles_of
from forensics.store.run import Run, derived

#: A printing unit above half the smallest effect hides it.
COARSE = 0.025
#: A level needs this many records on either side of a change to be told from the course of a start or an end.
SIDE = 20
Tier = Literal["note", "mild", "grave"]
_SETTLING = 0.03
_FASTEST = 0.1  # of the records
_EVEN = 0.01  # deviation below which no clock is told from another
_SPREAD = 2.0  # times the median pause: one that is far longer than the others is no cost of each save
_IN_PAUSES = frozenset({"stalls", "pauses"})  # their cost shows in a mean, not in a median
_HALF, _ALL_SLOWER = 1.5, 0.75  # times the time of the fastest tenth before, and the share of `z` that suffices then
_BY_LEVEL = frozenset({"jump", "ramp"})
_PIECE = 1_000_000  # so many records are looked at together: 8 MB for each number of them
#: Fewer devices that leave each as fast as it was explain a rise to this much beyond their share.
_SCALING = 1.1
_BESIDE = 3  # a change is found within so many records of where it is
_UNITS_OF_WORK = frozenset({"token", "sample", "token/device", "position"})


class Gravity(Struct, frozen=True):
    """How many times longer a step must take to be a mild or a grave loss, and what fewer records than usual need.

    Below `mild` a shared host, a warmer device or an evaluation beside the training explains it; these are ratios of
    times. The fastest tenth of the records must be slower by `mild`, too: in a control under load it was by 8 %, in
    nineteen slow jobs by 60 % and more. Levels must stand `z` deviations out: of 76 healthy jobs on a machine with
    other load, two changed by a quarter and a half at 4.7 and 5.0. Three quarters of that suffice where the fastest
    tenth is slower by half, which load does not do: of 91 controls it is in none by more than 12 %, and of 19 slow jobs
    on a machine with three times the load it can carry, two stand 5.7 and 5.8 out. A rise must have `quanta` units.

    With fewer than twenty records on a side the ratio must reach `short`, and the rise be `far` times what stretches of
    such a length do on either side: of 134 jobs without a slowdown, cut off after every fourth record, four were called
    slow at 3 and none at 4. Or the rise is half as `far`, to `high` times, at `sure` deviations over `few` records: of
    188 cuts of slow jobs with 5 to 19 slow records, 95 are found with both and 59 with the first; the highest of the
    134 has 2.3 times at 7.4 deviations, 1.2 times what its stretches do. Where the fastest tenth is slower by `grave`,
    too, the rise is `near` times that: of 12 slow jobs cut after every fourth record four are found instead of two, of
    170 others one more, whose machine was slow for a while.

    A grave loss costs `lost_s` seconds in all: in three healthy jobs of a busy machine, steps that took up to three
    times as long cost 1.1 to 2.6 s.
    """

    grave: float = 1.3
    mild: float = 1.1
    short: float = 1.5
    far: float = 4.0
    near: float = 3.0
    few: int = 8
    high: float = 2.0
    sure: float = 8.0
    z: float = 6.0
    quanta: float = 3.0
    lost_s: float = 3.0


class Pauses(Struct, frozen=True):
    """The cost of single slow records, as shares of the whole time.

    `share` counts those with a period, which cost `share_s` seconds in all (0 on a clock of no steps), `saving` and
    `evaluating` the extra time where the run saved or evaluated; `steps` is how many usual steps a save takes,
    `saving_s` the seconds that all of them cost. `records` are their positions in the clock, `combs` their periods,
    `saves` the positions at saves.
    """

    share: float
    saving: float
    evaluating: float
    steps: float
    saving_s: float
    share_s: float
    records: Steps
    combs: tuple[Comb, ...]
    saves: Steps


class Paced(Struct, frozen=True):
    """One clock of a run made steady, its change, if any, and the cost of its pauses (None: too short a clock)."""

    clock: Clock
    steady: Steady
    change: Change | None

    def row(self, index: int) -> dict[str, object]:
        """Give the metric row of a steady record."""
        return self.clock.row(int(self.steady.kept[index]))

    def at(self, index: int) -> int:
        """Give the step of a steady record."""
        return int(self.steady.steps[index])

    @property
    def interval(self) -> float:
        """Give the usual number of steps between two records."""
        return median_of(np.diff(self.steady.steps)) if len(self.steady) > 1 else 1.0

    def lost(self, change: Change) -> float:
        """Give the share of the time since the first record that a change cost, against the best level before it."""
        took = self.steady.seconds
        slow = took[change.first : change.end]
        return float((slow - change.before).clip(min=0.0).sum() / took.sum())

    def lost_s(self, change: Change) -> float:
        """Give the seconds that a change cost; infinite on a clock of no steps: it does not say how much was done."""
        if self.clock.unit != "step":
            return inf
        slow = self.steady.seconds[change.first : change.end]
        return float((slow - change.before).clip(min=0.0).sum() * self.interval)


@derived
def paced(run: Run) -> tuple[Paced, ...]:
    """Give every clock of a run that is long enough, the best of each source, attempt and rank."""
    found: list[Paced] = []
    for clock in _clocks(run):
        calm = clock.calm()
        series = steady(calm.seconds, calm.steps, calm.quantum)
        if series is not None:
            change = change_of(series)
            held = change is not None and (
                more_work(run, calm, series, change) or fewer_devices(run, calm, series.kept, change)
            )
            found.append(Paced(calm, series, None if held else change))
    return tuple(found)


@derived
def _clocks(run: Run) -> tuple[Clock, ...]:
    return tuple(best_clocks(run, fewest=FEWEST, coarsest=COARSE))


def fewer_devices(run: Run, clock: Clock, records: Steps, change: Change) -> bool:
    """Whether the run began again on fewer devices where its steps became slower, and each is about as fast as before.

    `records` are positions in the clock; `change` counts in them. A time per device tells that by itself.
    """
    said = devices_told(run) if "/device" not in clock.unit else ()
    if not said:
        return False
    beside = (min(max(at, 0), len(records) - 1) for at in (change.first - _BESIDE, change.first + _BESIDE))
    lines = [clock.row(int(records[at]))["line"] for at in beside]
    own = [(line, count) for source, line, count in said if source == clock.source]
    before = [count for line, count in own if line < lines[0]]
    after = [count for line, count in own if lines[0] <= line <= lines[1]]
    if not before or not after:
        return False
    return after[-1] < before[-1] and change.ratio * after[-1] / before[-1] < _SCALING


def more_work(run: Run, clock: Clock, series: Steady, change: Change) -> bool:
    """Whether the run prints tokens or samples per second that did not fall: then steps only hold more.

    A ramp may begin with the run: its later half is compared with its earlier one. Of several levels it is the last
    one, timed by the change, against the level before the first.
    """
    if clock.unit != "step":
        return False
    middle = (change.first + change.end) // 2 if change.form == "ramp" else change.first
    last = middle if change.form in {"ramp", *_IN_PAUSES} else max((middle, *change.cuts))
    begin, onset, level, end = (int(series.steps[at]) for at in (0, middle, last, change.end - 1))
    ratio = change.ratio**0.5 if change.form == "ramp" else change.ratio
    alike = [c for c in clocks(run) if c.unit in _UNITS_OF_WORK and c.attempt == clock.attempt]
    alike = [c for c in alike if c.form != "wall" or clock.form == "wall"]
    own = [c for c in alike if (c.source, c.rank) == (clock.source, clock.rank)]
    for rate in own or alike:
        at = rate.rows["at"]
        early, late = (
            paces.mean() if change.form in _IN_PAUSES else paces.median()
            for paces in (
                rate.rows.filter((at >= begin) & (at < onset))["pace"],
                rate.rows.filter((at >= level) & (at <= end))["pace"],
            )
        )
        if isinstance(early, float) and isinstance(late, float):
            return late < early * ratio**0.5
    return False


def tier_of(one: Paced, change: Change, cfg: Gravity) -> Tier:
    """Say how grave a change is: its size, if it exceeds the noise and held long enough to be believed."""
    if not change.confirmed or change.ratio - 1 < cfg.quanta * one.steady.resolution or change.form == "stairs":
        return "note"
    if change.form != "ramp" and change.first < _SETTLING * len(one.steady):
        return "note"
    if change.form in _BY_LEVEL and change.z < cfg.z * (_ALL_SLOWER if _fastest(one.steady, change) > _HALF else 1.0):
        return "note"
    sides = (change.end - change.first,) if change.form == "ramp" else (change.first, change.end - change.first)
    if min(sides) < SIDE and not _is_sure(one.steady, change, min(sides), cfg):
        return "note"
    if change.form == "jump" and _fastest(one.steady, change) < cfg.mild:
        return "note"
    grave = change.ratio >= cfg.grave and one.lost_s(change) >= cfg.lost_s
    return "grave" if grave else "mild" if change.ratio >= cfg.mild else "note"


def _is_sure(series: Steady, change: Change, count: int, cfg: Gravity) -> bool:
    """Whether a change with `count` records on its shorter side is reported.

    Pauses that begin have passed a test of chance of their own: they need to be enough, and cost as much as the fewest
    steps that they can stand in would at `high` times.
    """
    far = stands_out(series, change)
    if change.form in _IN_PAUSES and count >= cfg.few and count * (change.ratio - 1) >= cfg.few * (cfg.high - 1):
        return True
    high = count >= cfg.few and change.ratio >= cfg.high and change.z >= cfg.sure
    all_slower = count >= cfg.few and min(change.ratio, _fastest(series, change)) >= cfg.grave
    return (
        (change.ratio >= cfg.short and far >= cfg.far)
        or (high and far >= cfg.far / 2)
        or (all_slower and far >= cfg.near)
    )


def stands_out(series: Steady, change: Change) -> float:
    """How many times a rise is what stretches as long as its shorter side went away from the level on either side.

    0 where a side has fewer than five records. The printing unit counts as such a deviation. Stretches are of the raw
    times: a burst of another job's load is no spike to be set aside here, as the last records of a run may be one. The
    records of a ramp are taken about the line through them: from their median they depart by what they climb. A side
    that rose again is two stretches with a level each.
    """
    parts = [series.logs[: change.first], series.logs[change.first : change.end]]
    width = min(map(len, parts))
    if width < SHORTEST:
        return 0.0
    if change.form == "ramp":
        place = np.arange(len(parts[1]))
        parts[1] = parts[1] - np.polyval(np.polyfit(place, parts[1], 1), place)
    elif later := [cut for cut in change.cuts if change.first + width <= cut <= change.end - width]:
        parts[1:] = np.split(parts[1], [cut - change.first for cut in later])
    apart = [
        np.abs(np.lib.stride_tricks.sliding_window_view(part, width // 2).mean(axis=1) - median_of(part)).max()
        for part in parts
    ]
    coarse = series.resolution * median_of(series.seconds) / change.before / 2
    return log(change.ratio) / max(*apart, coarse, _EVEN)


def _fastest(series: Steady, change: Change) -> float:
    """How many times longer the fastest tenth of the records takes: another job's load leaves the fastest as fast."""
    early, late = (
        quantiles_of(part, [_FASTEST])[0] for part in (series.logs[: change.first], series.logs[change.first :])
    )
    return float(np.exp(late - early))


def gravest(run: Run, cfg: Gravity, *forms: Form) -> tuple[Paced, Change] | None:
    """Choose the one lasting loss to report, if it has one of these forms.

    The gravest, by the clock that is read most often and printed most finely: other clocks of a run show the same.
    """

    def key(pair: tuple[Paced, Change]) -> tuple[int, float, bool, float]:
        one, change = pair
        tier = ("grave", "mild", "note").index(tier_of(one, change, cfg))
        return tier, one.interval, one.steady.resolution > COARSE / 2, -change.z

    every = [(p, p.change) for p in paced(run) if p.change is not None and p.change.kind == "lasting"]
    found = min(every, key=key, default=None)
    return found if found is not None and found[1].form in forms else None


@derived
def pauses_of(run: Run) -> tuple[tuple[Clock, Pauses], ...]:
    """Give the cost of pauses on each clock of seconds per step, token or sample."""
    known = {id(one.clock): one for one in paced(run)}  # the clocks live as long as the run
    written = trainers_by_source(run)
    alone = {source for source, by in written.items() if any(one.times_one_step for one in by)}
    return tuple(
        (clock, found)
        for clock in _clocks(run)
        if clock.unit != "flop"
        and (found := _pauses_of(clock, known.get(id(clock)), of_one=clock.source in alone)) is not None
    )


def _pauses_of(clock: Clock, known: Paced | None, *, of_one: bool) -> Pauses | None:
    series = known.steady if known is not None else steady(clock.seconds, clock.steps, clock.quantum)
    if series is None:
        return None
    passed = clock.rows["passed"]
    passed = (passed.fill_null(1) if passed.null_count() else passed).to_numpy()[series.kept]
    usual_s = median_of(series.seconds)
    over, whole = _over_usual(series, passed)
    if of_one:  # the time of the other steps since the record before is not in it
        over = over / passed
        whole = float((np.exp(series.spikes.base) * passed).sum() + over.sum())
    change = known.change if known is not None else None
    reported = change is not None and change.form in _IN_PAUSES  # then pauses that begin are that change
    periods = tuple(comb for comb in series.pauses if not (reported and comb.begun))
    flags = series.periodic(periods)
    saves, evaluates = (clock.rows[name].to_numpy()[series.kept] for name in ("saved", "evaluated"))
    saving, at_saves = _beside(over, saves)
    evaluating, alone = _beside(over, evaluates & ~saves)
    # where the run also evaluates as it saves, that takes as long as elsewhere
    both = int(evaluates[at_saves].sum()) * evaluating / max(1, len(alone))
    saving, evaluating = max(0.0, saving - both), evaluating + min(saving, both)
    paused = float(over[flags].sum())
    return Pauses(
        share=paused / whole,
        share_s=paused if clock.unit == "step" else 0.0,
        saving=saving / whole,
        evaluating=evaluating / whole,
        steps=saving / max(1, len(at_saves)) / usual_s,
        saving_s=saving,
        records=series.kept[flags],
        combs=periods,
        saves=series.kept[at_saves],
    )


def _over_usual(series: Steady, passed: Steps) -> tuple[Floats, float]:
    """The time that each record takes beyond the level around it, and the whole time."""
    took, base = series.seconds * passed, series.spikes.base
    whole = float(took.sum())
    for first in range(0, len(took), _PIECE):
        took[first : first + _PIECE] -= np.exp(base[first : first + _PIECE]) * passed[first : first + _PIECE]
    return took.clip(min=0.0, out=took), whole


def _beside(over: Floats, marked: Flags) -> tuple[float, Steps]:
    """Time that marked records take beyond what others do, and where: the slowest of each run of marked neighbours."""
    edges = np.flatnonzero(np.diff(marked, prepend=False, append=False))
    runs = edges.reshape(-1, 2)
    if not len(runs) or marked.all():
        return 0.0, np.zeros(0, dtype=np.int64)
    width = int(median_of(runs[:, 1] - runs[:, 0]))
    quiet = np.where(marked, 0.0, over)
    usual = median_of(np.lib.stride_tricks.sliding_window_view(quiet, width).max(axis=1)) if len(over) > width else 0.0
    tops = np.array([first + int(np.argmax(over[first:end])) for first, end in runs])
    each = (over[tops] - usual).clip(min=0.0)
    return float(min(each.sum(), _SPREAD * median_of(each) * len(each))), tops
