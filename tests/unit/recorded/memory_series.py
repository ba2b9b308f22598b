"""Series of memory made from seeds, named by what they truly do; `memory_series.txt` holds what is said of them."""
# ruff: noqa: C901, PLR0912 - lists of series

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.analyses.memory.shape import Form, Step, form_of

Floats = NDArray[np.float64]


def noise(seed: int, count: int, sd: float, rho: float = 0.0) -> Floats:
    found = np.random.default_rng(seed).normal(0, sd, count)
    for at in range(1, count):
        found[at] += rho * found[at - 1]
    return found


def rises(places: Sequence[int] | range, heights: Sequence[float], count: int) -> Floats:
    found = np.zeros(count)
    for place, height in zip(places, heights, strict=False):
        found[place:] += height
    return found


def series() -> Iterator[tuple[str, Floats, dict[str, Any]]]:
    """Names, values over steps 0, 10, 20…, and what `form_of` is told of them."""
    for kind in (_levels, _slopes, _stairs, _shifts, _teeth, _spikes, _warm_ups):
        for name, values in kind():
            yield name, np.asarray(values, dtype=np.float64), {}
    for name, values, unit in _printed():
        yield name, np.round(values / unit) * unit, {"printed": unit}
    for name, values, unit in _maxima():
        yield name, values, {"cumulative": True, "printed": unit}
    for quantum in (0.05, 0.5):
        yield f"slope of 0.3, quantum of {quantum}", 20 + 0.3 * T / 119 + noise(55, 120, 0.005), {"quantum": quantum}
        low = 20 + 0.1 * (np.arange(120) // 24)
        yield f"stairs of 0.1, quantum of {quantum}", low + noise(55, 120, 0.005), {"quantum": quantum}
        yield f"running maximum in stairs of 0.1, quantum of {quantum}", low, {"quantum": quantum, "cumulative": True}

    for seed in range(60):
        for name, make in DRAWN.items():
            yield f"{name} {seed}", make(np.random.default_rng(seed)), {"cumulative": "records" in name}


Made = Iterator[tuple[str, Any]]
T = np.arange(120.0)


def _levels() -> Made:
    for count in (7, 8, 9, 30, 120):
        yield f"{count} level values", 20 + noise(count, count, 0.01)
    for rho in (0.2, 0.5, 0.75):
        yield f"level in noise of {rho}", 30 + noise(27, 300, 0.1, rho)


def _slopes() -> Made:
    for rise in (0.15, 0.19, 0.21, 0.25, 0.3, 0.5, 1, 4):
        for count in (40, 120):
            yield f"slope of {rise} in {count}", 20 + rise * np.arange(count) / (count - 1) + noise(1, count, 0.01)
    for rise in (0.1, 0.2, 0.26, 0.28, 0.32, 0.36, 0.45):
        yield f"slope of {rise} in loud noise", 20 + rise * T / 119 + noise(2, 120, 0.09)
    for rise in (0.001, 0.0018, 0.0021, 0.003):
        yield f"exact slope of {rise} at a low level", 0.05 + rise * np.arange(60) / 59
    for rho in (0.2, 0.5, 0.75):
        yield f"slope in noise of {rho}", 30 + 3 * np.linspace(0, 1, 300) + noise(27, 300, 0.1, rho)
    for begin in (20, 40, 60, 80, 100, 110):
        for rise in (0.3, 2):
            late = rise * np.maximum(T - begin, 0) / 119
            yield f"slope of {rise} from {begin}", 20 + late + noise(11, 120, 0.02)
    for bend in (0.03, 0.06, 0.09, 0.14, 0.2):
        yield f"bend of {bend}", 20 + T / 119 + bend * np.maximum(T - 60, 0) / 59 + noise(12, 120, 0.02)
    for end in (40, 60, 75, 82, 90, 105):
        yield f"slope to {end} and no more", 20 + 0.02 * np.minimum(T, end) + noise(13, 120, 0.01)
        slower = 0.0012 * np.maximum(T - end, 0)
        yield f"slower slope from {end}", 20 + 0.02 * np.minimum(T, end) + slower + noise(13, 120, 0.005)
    for within in (10, 20, 35, 60, 90):
        yield f"fills up in {within}", 20 + 3 * (1 - np.exp(-np.arange(150) / within)) + noise(14, 150, 0.01)
    yield "long slope", 20 + np.arange(9001) * 2e-4 + noise(50, 9001, 0.1)
    damaged = 20 + 0.02 * T + noise(53, 120, 0.02)
    damaged[[3, 50]], damaged[70], damaged[80] = np.nan, 1e9, -2e9
    yield "slope with damage", damaged
    yield "slope below 0", -20 + 2 * T / 119 + noise(56, 120, 0.02)
    yield "slope that falls", 20 - 2 * T / 119 + noise(56, 120, 0.02)


def _stairs() -> Made:
    for treads in (2, 3, 4, 6, 10, 16, 24, 29, 34):
        for height in (0.05, 0.2, 0.5):
            yield f"{treads} treads of {height}", 20 + height * (T * treads // 120) + noise(3, 120, 0.01)
    for height in (0.09, 0.15, 0.25, 0.35, 0.5, 0.7):
        yield f"stairs of {height} in loud noise", 20 + height * (np.arange(160) // 32) + noise(4, 160, 0.1)
    for height in (0.2, 0.3, 0.4, 0.6):
        for rho in (0.3, 0.45, 0.6):
            wandering = noise(5, 200, 0.08, rho)
            yield f"stairs of {height} in noise of {rho}", 20 + height * (np.arange(200) // 40) + wandering
    for seed in range(6):
        rng = np.random.default_rng(seed)
        uneven = rises(np.sort(rng.integers(10, 110, 5)).tolist(), rng.uniform(0.1, 0.8, 5).tolist(), 120)
        yield f"uneven stairs {seed}", 20 + uneven + noise(seed, 120, 0.03)
    for samples in (1, 2, 3, 4, 6):
        place = np.arange(150)
        riser = np.clip((place % 30 - 29 + samples) / samples, 0, 1)
        yield f"stairs with risers of {samples} samples", 20 + 0.5 * riser + 0.5 * (place // 30) + noise(6, 150, 0.02)
    for end in (70, 80, 88, 94, 100):
        yield f"stairs that end at {end}", 20 + rises(range(20, end, 10), [0.5] * 20, 160) + noise(7, 160, 0.01)
    yield "long stairs", 20 + 0.5 * (np.arange(12300) // 2050) + noise(52, 12300, 0.02)
    yield "stairs of 4096 samples", 20 + 0.5 * (np.arange(4096) // 1024) + noise(52, 4096, 0.02)
    damaged = 20 + 0.5 * (T // 30) + noise(53, 120, 0.02)
    damaged[[3, 50]], damaged[:2] = np.nan, 2
    yield "stairs with damage and a warm-up", damaged
    yield "stairs that fall", 20 - 0.5 * (T // 24) + noise(56, 120, 0.02)


def _shifts() -> Made:
    for height in (0.15, 0.19, 0.21, 0.3, 2):
        for place in (30, 60, 110):
            yield f"up by {height} at {place}", 20 + height * (place <= T) + noise(8, 120, 0.01)
            yield f"down by {height} at {place}", 20 - height * (place <= T) + noise(8, 120, 0.01)
    for fall in (0.1, 0.18, 0.22, 0.4):
        yield f"up by 1 and down by {fall}", 20 + rises([40, 80], [1, -fall], 120) + noise(9, 120, 0.01)
    for slope in (0.1, 0.2, 0.3, 0.5):
        yield f"up by 1 on a slope of {slope}", 20 + 1.0 * (T >= 60) + slope * T / 119 + noise(10, 120, 0.01)


def _teeth() -> Made:
    for teeth in (3, 4, 5, 8, 9, 12, 20):
        for sd in (0.0, 0.05):
            yield f"{teeth} teeth in noise of {sd}", 20 + 3 * ((np.arange(181) * teeth / 180) % 1) + noise(15, 181, sd)
    place = np.arange(300)
    tooth = (place / 30) % 1
    for drift in (0.2, 0.3, 0.4, 0.6):
        yield f"teeth whose floor rises by {drift}", 20 + (tooth + drift * place / 179)[:180] + noise(16, 180, 0.005)
    for high in (0.2, 0.34, 0.37, 0.6):
        raised = tooth + high * (place // 30 == 2)
        yield f"4 teeth, one floor higher by {high}", 20 + raised[:120] + noise(16, 120, 0.002)
        yield f"10 teeth, one floor higher by {high}", 20 + raised + noise(16, 300, 0.002)
    for jump in (0.5, 0.7, 0.8, 1):
        jumping = (1 - jump) * tooth + jump * (place % 30 >= 15)
        yield f"teeth that jump by {jump}", 20 + jumping[:120] + noise(17, 120, 0.002)
    for height in (0.1, 0.15, 0.2, 0.25, 0.4):
        yield f"teeth of {height}", 20 + height * ((T / 20) % 1) + noise(18, 120, 0.005)
    for height in (0.3, 0.5, 0.8):
        yield f"teeth of {height} in loud noise", 20 + height * ((place[:240] / 40) % 1) + noise(18, 240, 0.08)


def _spikes() -> Made:
    for width in (1, 2, 5, 6, 7):
        for places in ([50], [30, 60, 90], [30, 50, 100]):
            y = 20 + noise(19, 120, 0.01)
            for place in places:
                y[place : place + width] += 2
            yield f"spikes of {width} samples at {places}", y
    for level, sd, heights in ((20, 0.01, (0.05, 0.1, 0.19, 0.22, 0.5)), (20, 0.09, (0.3, 0.5, 0.6, 0.7))):
        for height in heights:
            y = level + noise(20, 60, sd)
            y[25] += height
            yield f"spike of {height} in noise of {sd}", y
    for shoulder in (0.3, 0.55, 0.65, 0.9):
        y = 20 + noise(21, 120, 0.01)
        y[50:53] += [shoulder, 1, shoulder]
        yield f"spike with shoulders of {shoulder}", y
    for place in (0, 1, 118, 119):
        y = 20 + noise(22, 120, 0.01)
        y[place] += 3
        yield f"spike at {place}", y
    for name, y in (("teeth", 20 + 3 * ((T / 30) % 1) + noise(23, 120, 0.02)), ("slope", 20 + 0.02 * T)):
        y[40] += 4
        yield f"{name} and a spike", y
    y = 20 + noise(51, 4097, 0.02)
    y[2000:2003] += 3
    yield "long level with a spike", y


def _warm_ups() -> Made:
    for count in (1, 2, 3, 5, 19, 20, 21, 24, 25):
        for height in (0.12, 0.3, 2, 8):
            y = 20 + noise(24, 120, 0.01)
            y[:count] -= height
            yield f"warm-up of {height} for {count}", y
    for count in (2, 6):
        for kept in (0.2, 0.6, 0.75, 1):
            y = 20 + noise(25, 120, 0.01)
            y[:count] -= 4
            y[count + 30 :] -= 4 * (1 - kept)
            yield f"warm-up for {count} of which {kept} is kept", y
    for kept in (0.2, 0.45, 0.55, 0.9):
        y = 20 + noise(25, 120, 0.01)
        y[:4] -= 4
        y[5:9] -= 4 * (1 - kept)
        yield f"warm-up after which {kept} stays", y
    for width in (8, 14, 18, 22, 30):
        yield f"stairs from {width} on", 20 + T // width + noise(26, 120, 0.01)
    for first in (2, 4):
        for width in (6, 8, 15, 17, 30):
            stairs = rises(range(first + width, 130, width), [8] * 30, 130)
            yield (
                f"jump at {first} and stairs of {width}",
                10 + rises([first], [8], 130) + stairs + noise(26, 130, 0.01),
            )


def _printed() -> Iterator[tuple[str, Floats, float]]:
    for unit in (0.1, 0.01):
        for rise in (0.05, 0.12, 0.2, 0.24, 0.26, 0.31, 0.6, 1.9, 2.1, 8):
            yield f"slope of {rise} printed to {unit}", 20 + rise * T / 119, unit
        for units in (1, 1.5, 2, 3, 5):
            yield f"stairs of {units} units of {unit}", 20 + units * unit * (T // 30), unit
            yield f"up by {units} units of {unit}", 20 + units * unit * (T >= 50), unit
        for units in (1, 8, 60):
            yield (
                f"noisy slope of {units} units of {unit}",
                20 + units * unit * T[:60] / 59 + noise(28, 60, 2 * unit),
                unit,
            )
    for count in (10, 14):
        for rise in (0.06, 0.11):
            yield f"slope of {rise} a sample in {count} printed to 0.1", 20 + rise * np.arange(count), 0.1


def _maxima() -> Iterator[tuple[str, Floats, float]]:
    top = np.maximum.accumulate
    for rise in (0.1, 0.3, 1, 4):
        yield f"running maximum of a slope of {rise}", top(20 + rise * T / 119 + noise(29, 120, 0.02)), 0.0
    for sd in (0.01, 0.1, 0.5):
        yield f"running maximum of noise of {sd}", top(20 + noise(30, 150, sd)), 0.0
    for seed in range(4):
        yield f"running maximum of wandering noise {seed}", top(20 + noise(31 + seed, 150, 0.1, 0.8)), 0.0
    for treads in (2, 3, 4, 6, 12, 29, 34, 40):
        yield f"running maximum of {treads} treads", 20 + 0.5 * (T * treads // 120), 0.0
    for end in (70, 85, 95, 100):
        yield f"running maximum of stairs that end at {end}", 20 + rises(range(20, end, 20), [0.5] * 20, 120), 0.0
    for by in (0.05, 0.1, 0.2, 0.5):
        rng = np.random.default_rng(3)
        places = np.arange(15, 120, 15) + rng.integers(-1 - int(8 * by), 2 + int(8 * by), 7)
        heights = (1 + by * rng.uniform(-1, 1, 7)).tolist()
        yield f"running maximum of stairs uneven by {by}", 20 + rises(places.tolist(), heights, 120), 0.0
    for seed in range(10):
        rng = np.random.default_rng(40 + seed)
        count = int(rng.integers(3, 14))
        places = (np.sort(rng.choice(118, count, replace=False)) + 1).tolist()
        yield f"running maximum of records {seed}", 20 + rises(places, rng.exponential(0.3, count).tolist(), 120), 0.0
    for place in (40, 58, 60, 62, 80):
        for height in (0.3, 1, 3):
            y = 20 + rises([place, 20, 25, place + 10, place + 15], [height, 0.4, 0.4, 0.1, 0.1], 120)
            yield f"running maximum with a jump of {height} at {place}", y, 0.0
    for place in (1, 3, 5, 6, 9, 12):
        for height in (0.3, 0.6, 3):
            y = 20 + rises([place], [height], 120) + np.maximum(0, T - 30) / 90
            yield f"running maximum settling by {height} at {place}", y, 0.0
    for late in (1, 2, 3, 5, 9, 12):
        y = 20 + rises([10, 20, 30, *range(119 - 4 * late, 119, 4)], [1, 1, 1, *[0.3] * late], 120)
        yield f"running maximum with {late} late records", y, 0.0
    for unit in (0.1, 0.01):
        for rise in (0.5, 1, 3):
            slope = np.floor((20 + rise * T / 119) / unit) * unit
            yield f"running maximum of a slope of {rise} printed to {unit}", slope, unit
        for units in (1, 2, 3):
            stairs = np.round((20 + units * unit * (T // 20)) / unit) * unit
            yield f"running maximum of stairs of {units} units of {unit}", stairs, unit


# Series of which nearly everything is drawn, so that each bound is met from both sides somewhere.


def _drawn_stairs(rng: np.random.Generator) -> Floats:
    treads, width, riser = int(rng.integers(3, 7)), int(rng.integers(5, 60)), int(rng.integers(1, 7))
    sd = float(rng.choice([0.02, 0.05, 0.1]))
    heights = sd * rng.uniform(0.6, 5) * rng.uniform(0.6, 1.4, treads)
    widths = np.maximum(4, width * rng.uniform(0.5, 1.5, treads + 1)).astype(int)
    places = np.cumsum(widths)[:-1]
    t = np.arange(int(widths.sum()))
    rise = sum(h * np.clip((t - place + riser) / riser, 0, 1) for h, place in zip(heights, places, strict=True))
    return 20 + rise + noise(int(rng.integers(1000)), len(t), sd, float(rng.choice([0.0, 0.0, 0.2, 0.4])))


def _drawn_slope(rng: np.random.Generator) -> Floats:
    count, knee = int(rng.integers(8, 200)), float(rng.uniform(0.1, 0.9))
    t = np.linspace(0, 1, count)
    early, late = rng.choice([0.0, 0.0, 1.0, 3.0]), rng.choice([0.0, 0.02, 0.1, 0.3, 2.0])
    course = early * np.minimum(t, knee) + late * np.maximum(t - knee, 0)
    return 20 + course + noise(int(rng.integers(1000)), count, float(rng.choice([0.0, 0.005, 0.03])))


def _drawn_teeth(rng: np.random.Generator) -> Floats:
    teeth, width = int(rng.integers(2, 13)), int(rng.integers(3, 25))
    height, sd = rng.uniform(0.2, 3), float(rng.choice([0.002, 0.02, 0.1]))
    floors = rng.normal(0, rng.choice([0.0, 0.05, 0.2, 0.4]) * height, teeth)
    jump = rng.choice([0.0, 0.0, 0.5, 0.8])
    inside = np.arange(width) / width
    shape = (1 - jump) * inside + jump * (inside >= 0.5)
    y = np.concatenate([floor + height * shape for floor in floors])
    return 20 + y + noise(int(rng.integers(1000)), len(y), sd)


def _drawn_start(rng: np.random.Generator) -> Floats:
    count = int(rng.integers(9, 110))
    y = 20 + noise(int(rng.integers(1000)), count, float(rng.choice([0.005, 0.02, 0.1])))
    for _ in range(int(rng.integers(1, 4))):
        y[: int(rng.integers(1, max(2, count // 4)))] -= rng.choice([0.1, 0.3, 1, 4])
    if rng.random() < 0.5:
        y[int(rng.integers(1, count)) :] -= rng.choice([0.2, 1, 3])
    width = int(rng.integers(4, 40))
    return y + rng.choice([0.0, 0.0, 0.3, 2.0]) * (np.arange(count) // width)


def _drawn_spikes(rng: np.random.Generator) -> Floats:
    count = int(rng.integers(20, 260))
    sd = float(rng.choice([0.005, 0.05]))
    y = 20 + noise(int(rng.integers(1000)), count, sd)
    for _ in range(int(rng.integers(1, 5))):
        place, width = int(rng.integers(0, count)), int(rng.integers(1, max(2, count // 15)))
        y[place : place + width] += sd * rng.uniform(3, 12) + rng.choice([0.0, 0.2, 1.0])
        if rng.random() < 0.4 and place > 0:
            y[place - 1] += rng.uniform(0.2, 0.8) * sd * 10
    return y


def _drawn_records(rng: np.random.Generator) -> Floats:
    count, records = int(rng.integers(9, 160)), int(rng.integers(1, 12))
    if rng.random() < 0.5:
        width = max(1, count // (records + 1))
        places = (np.arange(1, records + 1) * width + rng.integers(-1, 2, records)).clip(1, count - 1)
        heights = 0.5 * rng.uniform(0.8, 1.2, records)
    else:
        places, heights = rng.integers(1, count, records), rng.exponential(0.3, records)
    return 20 + rises(places.tolist(), heights.tolist(), count) + rng.choice([0.0, 0.0, 0.01]) * np.arange(count)


DRAWN = {
    "drawn stairs": _drawn_stairs, "drawn slope": _drawn_slope, "drawn teeth": _drawn_teeth,
    "drawn start": _drawn_start, "drawn spikes": _drawn_spikes, "drawn records": _drawn_records,
}  # fmt: skip


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _steps(steps: tuple[Step, ...]) -> str:
    told = steps if len(steps) <= 4 else (*steps[:3], steps[-1])
    return " ".join([str(len(steps)), *(f"at {one.index} by {_number(one.height)}" for one in told)])


def words(form: Form) -> str:
    kind = f"growing {form.kind}" if form.grows else form.kind
    parts = [kind, f"of {form.samples}", f"level {_number(form.level)}", f"noise {_number(form.noise)}"]
    parts += [f"warm-up {form.warmup}", f"onset {_number(form.onset)}", f"rise {_number(form.rise)}"]
    parts += [f"a step {_number(form.per_step)}", f"height {_number(form.height)}", f"period {_number(form.period)}"]
    return ", ".join(
        [*parts, f"steps {_steps(form.steps)}", f"excess {_steps(form.excess)}", "noted" if form.note else ""]
    )


def answers() -> Iterator[tuple[str, str]]:
    """What is said of each series."""
    for name, values, told in series():
        yield name, words(form_of(10.0 * np.arange(len(values)), values, **told))
