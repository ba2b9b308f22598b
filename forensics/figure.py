"""What a chart shows, as values: built from a run's tables below the renderers, drawn by a renderer that sees no table.

Every figure says in words what it shows (`caption`) and how its points were chosen (`note`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forensics.model import Figure

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

    `projected` marks a continuation that was computed, not read; `culprit` the series of a rank at fault.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    gaps: tuple[Gap, ...] = ()
    records: int = 0
    projected: bool = False
    culprit: bool = False


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
class Chart(Figure):
    """Curves over one axis."""

    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    levels: tuple[Level, ...] = ()
    log: bool = False


@dataclass(frozen=True, slots=True)
class Heat(Figure):
    """Rows of cells over one axis: `cells[row][column]` from 0 to 1 of `most`, None where nothing was recorded.

    `ticks` are words below the axis, each at its share of the way from 0 to 1, as are `marks`; `told` is one sentence
    for each row, `ends` a word or two behind it. `flagged` are cells (row, column) that are marked beside their shade,
    and `flag` says what the mark means.
    """

    x_label: str
    ticks: tuple[tuple[float, str], ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    most: float
    unit: str
    told: tuple[str, ...]
    culprits: tuple[str, ...] = ()
    flagged: tuple[tuple[int, int], ...] = ()
    flag: str = ""
    ends: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar made of parts, in the order of the figure's `parts`."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Bars(Figure):
    """Stacked bars; `parts` names the pieces of each, `unit` is that of their values, `limit` what no bar can pass."""

    unit: str
    parts: tuple[str, ...]
    bars: tuple[Bar, ...]
    limit: Mark | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened: seconds since the first (None without a clock), in which lane, what was found there.

    `primary` is what the verdict rests on.
    """

    at_s: float | None
    when: str
    lane: str
    text: str
    place: str
    primary: bool = False


@dataclass(frozen=True, slots=True)
class Lanes(Figure):
    """What happened when, one lane a rank, in the order of time."""

    moments: tuple[Moment, ...]
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One frame of stacks: what it and all that it called hold; `kind` is an index into the figure's `kinds`."""

    label: str
    value: float
    kind: int
    children: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Flame(Figure):
    """Stacks lying on each other, the outermost frame below: `roots` beside each other are all of `total`.

    `rows` is the same as a table under `head`: the largest stacks.
    """

    unit: str
    total: float
    kinds: tuple[str, ...]
    roots: tuple[Block, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Rows(Figure):
    """What two runs differ in: facts in words, then a table; `notes` are whole sentences."""

    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
