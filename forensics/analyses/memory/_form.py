"""The shape of a memory series as values, what counts as a change in it, and what its printed digits can carry."""

from __future__ import annotations

from math import nan
from typing import Literal

import numpy as np
from msgspec import Struct

from forensics.stats.spread import Floats, spread
from forensics.values import replace

Kind = Literal[
    "flat", "plateau", "slope", "staircase", "sawtooth", "spike", "level_shift", "unresolved", "unknown"
]  # fmt: skip
#: PyTorch's caching allocator takes memory from the driver in pieces of 2 MiB (c10/cuda, kSmallBuffer), here in GiB.
QUANTUM_GIB = 2 / 1024
FEWEST = 8
#: No memory is as large as this, in GiB; such a value is damage.
ABSURD = 1e9
_GROWING = frozenset({"slope", "staircase", "unresolved"})


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


class Scale(Struct, frozen=True):
    """What counts: noise of one sample, the least rise that matters, and the printed unit (0 for exact values)."""

    noise: float
    least: float
    printed: float


def if_resolved(form: Form, y: Floats, line: Floats, scale: Scale) -> Form:
    """Take back a shape that the printed digits cannot carry: all of the change is rounding, or lies within one unit.

    A step of two units and more is more than rounding; a slope that moves half a unit per sample leaves no treads.
    """
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


def regular(steps: tuple[Step, ...]) -> float | None:
    """Give the median distance in x of at least three steps when they are evenly spread."""
    apart = np.diff([s.x for s in steps])
    if len(apart) < 2:
        return None
    middle = float(np.median(apart))
    return middle if middle > 0 and spread(apart.astype(np.float64)) <= 0.2 * middle else None
