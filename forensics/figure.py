"""What a chart shows, as values: built from a run's tables below the renderers, drawn by a renderer that sees no table.

Every figure says in words what it shows (`caption`) and how its points were chosen (`note`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["onset", "clean", "checkpoint", "event", "limit"]


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of records that hold no finite number: from `first` to `last` on the x axis, and what stood there."""

    first: float
    last: float
    what: str
    records: int = 1


@dataclass(frozen=True, slots=True)
class Curve:
    """One series: finite points in order, the stretches that are not finite, and how many records stand behind them.

    `projected` marks a continuation that was computed, not read.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    gaps: tuple[Gap, ...] = ()
    records: int = 0
    projected: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the x axis that matters, or with `role` limit a value on the y axis."""

    at: float
    label: str
    role: Role = "event"


@dataclass(frozen=True, slots=True)
class Level:
    """A typical value `y` that held from `first` to `last`."""

    first: float
    last: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves over one axis. `rules` are those whose findings it illustrates."""

    key: str
    title: str
    caption: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    levels: tuple[Level, ...] = ()
    rules: tuple[str, ...] = ()
    log: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Heat:
    """Rows of cells over one axis: `cells[row][column]` from 0 to 1 of `most`, None where nothing was recorded.

    `edges` are the labels of the first and the last column; `told` is one sentence for each row.
    """

    key: str
    title: str
    caption: str
    x_label: str
    edges: tuple[str, str]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    most: float
    unit: str
    told: tuple[str, ...]
    culprits: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar made of parts, in the order of the figure's `parts`."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """Stacked bars; `parts` names the pieces of each, `unit` is that of their values."""

    key: str
    title: str
    caption: str
    unit: str
    parts: tuple[str, ...]
    bars: tuple[Bar, ...]
    rules: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened: seconds since the first (None without a clock), in which lane, what was found there.

    `primary` is what the verdict stands on.
    """

    at_s: float | None
    when: str
    lane: str
    text: str
    place: str
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Lanes:
    """What happened when, one lane a rank, in the order of time."""

    key: str
    title: str
    caption: str
    moments: tuple[Moment, ...]
    lanes: tuple[str, ...]
    rules: tuple[str, ...] = ()
    note: str = ""


Figure = Chart | Heat | Bars | Lanes
