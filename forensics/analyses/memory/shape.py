"""The shape of a series of memory over steps: flat, plateau, slope, staircase, sawtooth, spike or level shift.

The answer is `unresolved` where the values were printed too coarsely to tell a slope from a staircase, and `unknown`
for fewer than 8 samples. It is chosen by the Bayesian information criterion between a constant, a robust line and a
piecewise constant, after warm-up and isolated excursions are taken out. A series that can only rise (a peak that was
never reset, a cache that is never given back) is judged by when it set new records: among the values of a stationary
series their number in the second half is about Poisson with mean ln 2, whatever the noise (Renyi 1962).
"""

from __future__ import annotations

from math import log, nan
from typing import Literal

import numpy as np
from msgspec import Struct

from forensics.stats.changes import change_points
from forensics.stats.running import edge_median
from forensics.stats.spread import Floats, each_once, median_of, spread
from forensics.stats.trend import Line, line_of
from forensics.values import replace

Kind = Literal[
    "flat", "plateau", "slope", "staircase", "sawtooth", "spike", "level_shift", "unresolved", "unknown"
]  # fmt: skip
#: PyTorch's caching allocator takes memory from the driver in pieces of 2 MiB (c10/cuda, kSmallBuffer), here in GiB.
QUANTUM_GIB = 2 / 1024
FEWEST = 8
#: No memory is as large as this, in GiB; such a value is damage.
ABSURD = 1e9
#: Shapes that grow, and those that stay but for single records.
_GROWING = frozenset({"slope", "staircase", "unresolved"})
LEVEL = ("flat", "plateau", "spike")
#: A series is judged by so many samples at most; longer ones by medians of equal blocks.
_MOST_SAMPLES = 4096
#: From so many floors on, a low or a high one does not count.
_FLOORS = 8
#: Stairs have ended when so many times their usual distance has passed without another.
_ENDED = 2.5
#: Correlation of neighbours on the treads from which the noise itself wanders.
_WANDERS = 0.35
#: Of a stair's height, what rises within three samples; spread of treads of like length; heights beyond chance.
_RISER, _LIKE, _HIGH = 0.6, 0.5, 4.0
_OVER = "rose at first, and no more in the last third"
#: Samples behind a jump that say whether it lasts.
_SHORT = 5
#: Of the rise of a running maximum, the jump that ends its warm-up.
_MOST = 0.4
#: Memory that a warm-up took and never gave back, as a share of it.
_KEPT = 0.7
#: The tread before a jump of the warm-up is so many times shorter than those behind it.
_SHORTER = 4


class Step(Struct, frozen=True):
    """A lasting rise or an excursion: index into the series as given, its x, and its height in the series' unit."""

    index: int
    x: float
    height: float


class Form(Struct, frozen=True):
    """The shape of one series; heights and rises are in its unit, `per_step` in that unit per x.

    `warmup` samples at the start were left out; `onset` is the index at which a growth or a shift began; `period` is
    the distance in x of steps, teeth or excursions where it is regular; `excess` are isolated excursions.
    """

    kind: Kind
    samples: int
    warmup: int = 0
    level: float = nan
    noise: float = 0.0
    rise: float = 0.0
    per_step: float = 0.0
    onset: int | None = None
    steps: tuple[Step, ...] = ()
    excess: tuple[Step, ...] = ()
    period: float | None = None
    height: float | None = None
    note: str = ""

    @property
    def grows(self) -> bool:
        """Whether it rises for as long as it was seen: a slope, a staircase, or a growth of unresolved shape."""
        return self.kind in _GROWING and self.rise > 0


class _Scale(Struct, frozen=True):
    """Bounds: noise of one sample, the least rise that matters, and the printed unit (0 for exact values)."""

    noise: float
    least: float
    printed: float


def form_of(
    x: Floats, y: Floats, *, quantum: float = QUANTUM_GIB, printed: float = 0.0, cumulative: bool = False
) -> Form:
    """Judge a series; x rises, y may hold NaN and absurd values (left out).

    `quantum` is the least change of what is measured, `printed` the unit of the last printed digit (0 when exact), and
    `cumulative` says that the value can only rise.
    """
    good, where = np.isfinite(x) & (np.abs(y) < ABSURD), range(len(y))
    if not good.all():
        where = np.flatnonzero(good)
        x, y = x[good], y[good]
    if len(y) < FEWEST:
        return Form("unknown", len(y), note=f"fewer than {FEWEST} samples")
    x, y, tops, per = _thinned(x, y)
    skip = _settled(y) if cumulative else _warmup(y, quantum)
    x, y, tops = x[skip:], y[skip:], tops[skip:]
    noise = max(_noise_of(y), quantum / 8, 1e-4 * abs(median_of(y)), printed / 12**0.5)
    scale = _Scale(noise, max(0.01 * abs(median_of(y)), 3 * noise, quantum), printed)
    form = _records(x, y, scale, quantum) if cumulative else _interval(x, y, tops, scale, quantum)
    return _in_samples(replace(form, warmup=skip, noise=noise, level=median_of(y)), where, skip, per)


def _in_samples(form: Form, where: np.ndarray | range, skip: int, per: int) -> Form:
    """Turn indices of thinned samples without warm-up into indices of the series as given."""

    def at(index: int) -> int:
        return int(where[min((index + skip) * per, len(where) - 1)])

    return replace(
        form,
        samples=len(where),
        warmup=at(0) if skip else 0,
        onset=None if form.onset is None else at(form.onset),
        steps=tuple(replace(s, index=at(s.index)) for s in form.steps),
        excess=tuple(replace(s, index=at(s.index)) for s in form.excess),
    )


def _interval(x: Floats, y: Floats, tops: Floats, scale: _Scale, quantum: float) -> Form:
    if not np.ptp(tops) and not np.ptp(y):
        return Form("flat", len(y))
    loud = scale.noise if tops is y else max(scale.noise, _noise_of(tops))
    found = _excursions(tops, max(6 * loud, scale.least))
    base = median_of(tops)
    excess = tuple(Step(a, float(x[a]), float(tops[a:b].max() - base)) for a, b in found)
    calm = _without(y, found)
    form = _sawtooth(x, y, scale, quantum) or _sawtooth(x, calm, scale, quantum) or _trend(x, calm, scale, quantum)
    if form.kind == "flat" and excess:
        heights = [e.height for e in excess]
        form = replace(form, kind="spike", onset=excess[0].index, height=max(heights), period=_regular(excess))
    return replace(form, samples=len(y), excess=excess)


def _sawtooth(x: Floats, y: Floats, scale: _Scale, quantum: float) -> Form | None:
    """At least two large falls back to one floor, each after a gradual rise."""
    moves = np.diff(y)
    # many teeth look like wandering noise: what counts is the noise of neighbours
    noise = min(scale.noise, max(_near_noise(y), quantum / 8, scale.printed / 12**0.5))
    least = max(scale.least * noise / scale.noise, 0.01 * abs(median_of(y)), quantum)
    falls = np.flatnonzero(moves < -max(least, 6 * noise)) + 1
    if len(falls) < 2:
        return None
    teeth = np.split(y, falls)
    floors = np.array([median_of(tooth[: max(1, len(tooth) // 5)]) for tooth in teeth[1:]])
    apart = float(np.subtract(*np.quantile(floors, (0.9, 0.1)))) if len(floors) >= _FLOORS else float(np.ptp(floors))
    rises = [float(tooth[-1] - tooth[0]) for tooth in teeth[1:-1]]
    fall = -median_of(moves[falls - 1])
    sudden = median_of([np.diff(tooth).max(initial=0.0) for tooth in teeth[1:-1]])
    if apart > max(0.35 * fall, scale.least) or median_of(rises) <= least or sudden > 0.75 * fall:
        return None
    steps = tuple(Step(int(i), float(x[i]), float(moves[i - 1])) for i in falls)
    return Form("sawtooth", len(y), onset=None, steps=steps, period=_regular(steps), height=fall)


def _trend(x: Floats, y: Floats, scale: _Scale, quantum: float) -> Form:
    n, t = len(y), (x - x[0]) / max(float(x[-1] - x[0]), 1e-9)
    line = line_of(t, y)
    cuts = change_points(y, scale.noise)
    treads = np.split(y, cuts)
    means = np.array([tread.mean() for tread in treads])
    heights = np.diff(means)
    errors = {
        "flat": float(np.sum((y - median_of(y)) ** 2)),
        "slope": float(np.sum((y - line.start - line.rise * t) ** 2)),
        "steps": float(sum(((tread - mean) ** 2).sum() for tread, mean in zip(treads, means, strict=True))),
    }
    cost = {"flat": 1, "slope": 2, "steps": 1 + 2 * len(cuts)}
    bic = {name: errors[name] / scale.noise**2 + cost[name] * log(n) for name in errors}
    ups = [i for i, h in enumerate(heights) if h >= max(min(scale.least, quantum), scale.noise)]
    downs = [i for i, h in enumerate(heights) if h <= -scale.least]
    tallest = max((float(heights[i]) for i in ups), default=0.0)
    steps = tuple(Step(cuts[i], float(x[cuts[i]]), float(heights[i])) for i in ups if heights[i] >= 0.2 * tallest)
    net = float(means[-1] - means[0])
    jumped = _jump_share(treads, t, cuts, [s.height for s in steps]) >= 0.7 and bic["steps"] < bic["slope"]
    long = median_of(np.diff([0, *cuts, n])) >= 4  # shorter treads cannot be told from a slope
    stairs = jumped and len(steps) >= 2 and not downs and net >= scale.least and long
    if jumped and len(steps) == 1 and not downs and net >= scale.least:
        form = Form("level_shift", n, rise=net, onset=steps[0].index, steps=steps, height=steps[0].height)
    elif stairs and _sudden(y, steps, scale.noise):
        form = Form("plateau", n, rise=net, steps=steps, note=_OVER) if _ended(steps, n) else _staircase(x, steps, net)
    elif len(downs) == 1 and not steps and bic["steps"] < bic["slope"]:
        down = Step(cuts[downs[0]], float(x[cuts[downs[0]]]), float(heights[downs[0]]))
        form = Form("level_shift", n, rise=net, onset=down.index, steps=(down,), height=down.height)
    elif bic["slope"] < bic["flat"] and abs(line.rise) >= scale.least:
        form = _slope(x, t, y, line, scale)
    else:
        return Form("flat", n, rise=line.rise)
    return _if_resolved(form, y, line.start + line.rise * t, scale)


def _sudden(y: Floats, steps: tuple[Step, ...], noise: float) -> bool:
    """Whether rises happen within a sample or two; low ones must be equally far apart, as chance makes low ones too.

    Noise that wanders about a slope looks like stairs whose risers are gradual, whose treads are of any length, or on
    whose treads neighbours still resemble each other.
    """
    # the lower a riser in the noise, the more samples on both sides tell it
    least = min(s.height for s in steps)
    near = int(min(max(3.0, 8 * (noise / least) ** 2), max(3, np.diff([0, *[s.index for s in steps]]).min() // 3)))
    risers = np.array([median_of(y[s.index :][:near]) - median_of(y[: s.index][-near:]) for s in steps])
    heights = np.array([s.height for s in steps])
    treads = np.diff([0, *[s.index for s in steps]])
    like = float(treads.std()) <= _LIKE * float(treads.mean()) and _wandering(y, steps) <= _WANDERS
    return median_of(risers / heights) >= _RISER and (like or median_of(heights) >= _HIGH * noise)


def _wandering(y: Floats, steps: tuple[Step, ...]) -> float:
    """Correlation of neighbouring samples that is left on the treads between the steps; 0 where nothing is left."""
    left = np.concatenate([tread - tread.mean() for tread in np.split(y, [s.index for s in steps])])
    whole = float(np.dot(left, left))
    return float(np.dot(left[1:], left[:-1])) / whole if whole > 0 else 0.0


def _ended(steps: tuple[Step, ...], n: int) -> bool:
    """Whether stairs have ended: the last tread is much longer than those before it, which shrink or not."""
    widest = float(np.diff([0, *[s.index for s in steps]]).mean())
    return n - steps[-1].index > max(_ENDED * widest, n / 3)


def _jump_share(treads: list[Floats], t: Floats, cuts: list[int], heights: list[float]) -> float:
    """Share of the whole rise that happens between treads, not inside them."""
    jumps = sum(heights)
    inside = 0.0
    for tread, times in zip(treads, np.split(t, cuts), strict=True):
        if len(tread) >= 4:
            inside += line_of(times, tread).rise * float(times[-1] - times[0])
    whole = jumps + max(inside, 0.0)
    return jumps / whole if whole > 0 else 0.0


def _staircase(x: Floats, steps: tuple[Step, ...], net: float) -> Form:
    heights = np.array([s.height for s in steps])
    per = net / max(float(x[-1] - x[0]), 1e-9)
    return Form(
        "staircase", len(x), rise=net, per_step=per,
        onset=steps[0].index, steps=steps, period=_regular(steps), height=median_of(heights),
    )  # fmt: skip


def _slope(x: Floats, t: Floats, y: Floats, line: Line, scale: _Scale) -> Form:
    """A slope, from where it begins; a plateau when it had ended a third before the end of the series."""
    n, span = len(y), max(float(x[-1] - x[0]), 1e-9)
    third = max(FEWEST, n // 3)
    tail = line_of(t[-third:], y[-third:]).rise / 3
    whole = median_of(y[-max(1, n // 10) :]) - median_of(y[: max(1, n // 20)])
    if line.rise > 0 and tail < 0.1 * max(line.rise, whole) / 3 and tail < scale.least:
        return Form("plateau", n, rise=line.rise, note=_OVER)
    knot = _knot(t, y, scale)
    late = line if knot == 0 else line_of(t[knot:], y[knot:])
    rise = line.rise if knot == 0 else late.rise * float(1 - t[knot])
    return Form("slope", n, rise=rise, onset=knot, per_step=late.rise / span)


def _knot(t: Floats, y: Floats, scale: _Scale) -> int:
    """Index where a flat stretch turns into a slope, 0 when one line explains the whole as well."""
    n = len(y)
    tried = each_once(np.linspace(0, n - FEWEST, 24).astype(int))
    errors: list[float] = []
    for at in tried:
        hinge = np.maximum(t - t[at], 0.0)
        design = np.column_stack((np.ones(n), hinge))
        fit = np.linalg.lstsq(design, y, rcond=None)[0]
        errors.append(float(np.sum((y - design @ fit) ** 2)))
    best = int(np.argmin(errors))
    return int(tried[best]) if (errors[0] - errors[best]) / scale.noise**2 > 10 + log(n) else 0


# How many samples of a memory series belong to its warm-up: the first jumps that never come back.


def _warmup(y: Floats, quantum: float) -> int:
    """Count samples before the last large early jump that never came back: optimizer state, workspaces, compilation."""
    until = min(len(y) // 5, 20)
    moves = np.diff(y)
    usual = median_of(moves)
    large = max(quantum, 5 * _noise_of(y), 0.01 * abs(median_of(y)))
    jumps = [int(i) for i in np.flatnonzero(moves[:until] - usual > large) if _lasts(y, int(i), usual)]
    if not jumps or len(y) - jumps[-1] - 1 < FEWEST:
        return 0
    last, first = jumps[-1] + 1, jumps[0] + 1
    before, after = median_of(y[:first]), median_of(y[last : last + _SHORT])
    if y[last:].min() < before + _KEPT * (after - before):
        return 0
    # a staircase begins with the same jumps that it goes on with, and at the same distance
    height = 0.5 * float((moves[:until] - usual).max())
    later = [i for i in np.flatnonzero(moves[until:] - usual >= height) + until if _lasts(y, int(i), usual)]
    return last if not later or (len(y) - last) / (len(later) + 1) >= _SHORTER * last else 0


def _settled(y: Floats) -> int:
    """Count the first samples of a running maximum before the jump that made most of its rise, where it came early."""
    moves = np.diff(y)
    early = (
        np.flatnonzero(moves[: max(2, min(5, len(y) // 10))] >= _MOST * float(y[-1] - y[0])) if len(moves) else moves
    )
    return int(early[-1]) + 1 if len(early) and y[-1] > y[0] and len(y) - int(early[-1]) - 1 >= FEWEST else 0


def _lasts(y: Floats, at: int, usual: float) -> bool:
    """Whether a rise from sample `at` to the next one lasts in the samples behind it."""
    behind = y[at + 1 : at + 1 + _SHORT]
    return median_of(behind) - y[at] - usual >= 0.5 * float(y[at + 1] - y[at] - usual)


# The shape of a memory series that can only rise: a peak that was never reset, a cache that is never given back.


def _records(x: Floats, y: Floats, scale: _Scale, quantum: float) -> Form:
    """Judge a series that can only rise by its new records in the second half."""
    n, moves = len(y), np.diff(y)
    rises = np.flatnonzero(moves >= max(quantum / 8, scale.printed / 2)) + 1
    total, half = float(y[-1] - y[0]), n // 2
    late = int((rises >= half).sum())
    steps = tuple(Step(int(i), float(x[i]), float(moves[i - 1])) for i in rises[:64])
    note = "a running maximum hides any decrease"
    if total < max(0.01 * abs(median_of(y)), quantum):
        return Form("flat", n, rise=total, note=note)
    even, second = _even(steps, n), float(y[-1] - y[half])
    largest = float(moves.max())
    if largest >= 0.5 * total and moves.argmax() >= half:  # one shift is no growth, nor are the few records after it
        late, second = late - 1, second - largest
    if not even and (late < 3 or second < 0.2 * total):
        return Form("plateau", n, rise=total, steps=steps, note=note)
    per = (y[-1] - y[half]) / max(float(x[-1] - x[half]), 1e-9)
    large = _large(x, moves)
    stairs = even or _regular_stairs(large, total)
    kind: Kind = "staircase" if stairs else "slope" if late >= 0.15 * (n - half) else "unresolved"
    steps = large if stairs else steps
    form = Form(
        kind, n, rise=total, per_step=float(per), onset=int(rises[0]),
        steps=steps, period=_regular(steps), height=median_of([s.height for s in steps]), note=note,
    )  # fmt: skip
    t = (x - x[0]) / max(float(x[-1] - x[0]), 1e-9)
    fit = line_of(t, y)
    return _if_resolved(form, y, fit.start + fit.rise * t, scale)


def _large(x: Floats, moves: Floats) -> tuple[Step, ...]:
    """Give the records of at least a quarter of the largest one's height, the first 64 of them."""
    large = np.flatnonzero(moves >= 0.25 * moves.max()) + 1
    return tuple(Step(int(i), float(x[i]), float(moves[i - 1])) for i in large[:64])


def _regular_stairs(steps: tuple[Step, ...], total: float) -> bool:
    """Whether steps of like height at like distances, none nearer than 4 samples, carry most of the rise."""
    if len(steps) < 3 or _regular(steps) is None:
        return False
    heights = np.array([s.height for s in steps])
    apart = np.diff([s.index for s in steps])
    return bool(heights.sum() >= 0.6 * total and heights.std() <= 0.35 * heights.mean() and median_of(apart) >= 4)


def _even(steps: tuple[Step, ...], n: int) -> bool:
    """Whether at least three steps of equal height are equally spaced over the run, which never happens by chance."""
    heights = np.array([s.height for s in steps])
    apart = np.diff([s.index for s in steps])
    if len(steps) < 3 or apart.min() < 4 or n - steps[-1].index > 1.5 * apart.max():
        return False
    return bool(np.ptp(heights) <= 0.15 * heights.mean() and np.ptp(apart) <= max(2, 0.15 * apart.mean()))


# What the printed digits can carry, and what a series is made of: its noise, and isolated excursions.


def _if_resolved(form: Form, y: Floats, line: Floats, scale: _Scale) -> Form:
    """Take back a shape that the printed digits cannot carry: all of the change is rounding, or is within one unit."""
    unit = scale.printed
    if unit <= 0 or form.kind == "plateau":
        return form
    off = np.abs(y - line)
    fits = float(np.quantile(off, 0.98)) <= 1.01 * unit
    heights = [abs(s.height) for s in form.steps]
    resolved = form.kind in {"staircase", "level_shift"} and float(np.median(heights)) >= 2 * unit
    if form.kind == "slope":
        resolved = not fits or abs(form.rise) / len(y) >= unit / 2 or abs(form.rise) >= 20 * unit
    if resolved and abs(form.rise) > 2.5 * unit:
        return form
    note = f"printed to {unit:.4g}: a slope and a staircase look alike; log more digits"
    return replace(form, kind="unresolved", note=note)


def _regular(steps: tuple[Step, ...]) -> float | None:
    """Give the median distance in x of at least three steps when they are evenly spread."""
    apart = np.diff([s.x for s in steps])
    if len(apart) < 2:
        return None
    middle = float(np.median(apart))
    return middle if middle > 0 and spread(apart.astype(np.float64)) <= 0.2 * middle else None


def _noise_of(y: Floats) -> float:
    """Standard deviation of what is left without trend and steps: from differences of near and of farther samples.

    Differences of neighbours alone would call slowly wandering noise smooth.
    """
    lags = {1, max(1, len(y) // 50)}
    return max(spread(y[lag:] - y[:-lag]) for lag in lags) / 2**0.5


def _near_noise(y: Floats) -> float:
    """Standard deviation of one sample by differences of neighbours alone, which teeth and steps hardly touch."""
    return spread(y[1:] - y[:-1]) / 2**0.5


def _excursions(y: Floats, least: float) -> list[tuple[int, int]]:
    """Find isolated stretches above a running median by more than `least` that begin and end with a jump.

    Each is half open, at most a twentieth of the samples long (or one sample), and touches neither end.
    """
    n = len(y)
    longest = max(1, n // 20)
    above = y - edge_median(y, max(5, 2 * longest + 1))
    over = np.concatenate(([0], (above > least).astype(np.int8), [0]))
    edges = np.diff(over)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    kept = (ends - starts <= longest) & (starts > 0) & (ends < n)
    starts, ends = starts[kept], ends[kept]
    if not len(starts):
        return []
    high = 0.6 * np.maximum.reduceat(np.append(above, 0.0), np.stack((starts, ends), axis=1).ravel())[::2]
    sudden = (y[starts] - y[starts - 1] >= high) & (y[ends - 1] - y[ends] >= high)
    return list(zip(starts[sudden].tolist(), ends[sudden].tolist(), strict=True))


def _without(y: Floats, stretches: list[tuple[int, int]]) -> Floats:
    """Give the series with each stretch replaced by the mean of its two neighbours."""
    calm = y.copy()
    for a, b in stretches:
        calm[a:b] = (calm[a - 1] + y[min(b, len(y) - 1)]) / 2
    return calm


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats, int]:
    """Give at most 4,096 samples: medians of x and y over odd blocks, block maxima of y, and samples per block."""
    per = -(-len(y) // _MOST_SAMPLES)
    if per == 1:
        return x, y, y, 1
    per += 1 - per % 2  # the median of an odd number is one of them: an edge stays sharp
    whole = len(y) // per * per
    tops = y[:whole].reshape(-1, per)
    return np.median(x[:whole].reshape(-1, per), axis=1), np.median(tops, axis=1), tops.max(axis=1), per
