"""What a maker of golden runs is written with: a run as files, its label, and series to fill them with.

A maker is a module with `runs() -> Iterator[Made]`, and `pairs() -> Iterator[Pair]` where it makes runs for `diff`.
The same files come out on every machine: numbers come from a generator with a seed.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Series = list[float]
NAN = math.nan


@dataclass(frozen=True, slots=True)
class Label:
    """What is right to say of a run, whatever is said today; alternatives are joined by `|`, None leaves a field open.

    `outcome` is failed, suspect, healthy or cannot_say, `shape` one of the eight or none. `onset` is a step, right
    within `within` steps. `says` holds words of which the first action names at least one.
    """

    outcome: str
    shape: str = "none"
    causes: tuple[str, ...] = ()
    onset: int | None = None
    within: int = 1
    culprits: tuple[int, ...] | None = None
    checkpoint: int | None = None
    says: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """The label as it is kept."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Made:
    """A run directory: its name, its files by relative path, and its label."""

    name: str
    files: Mapping[str, str | bytes]
    label: Label


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs to compare, by name, and which verdict of `diff` is right."""

    name: str
    base: tuple[str, ...]
    cand: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Noise:
    """Relative Gaussian noise with a seed, so that a series looks measured."""

    share: float
    seed: int = 0

    def on(self, values: Iterable[float]) -> Series:
        """The values, each times 1 + noise; NaN and infinities stay."""
        rng = random.Random(self.seed)
        return [value * (1 + rng.gauss(0, self.share)) for value in values]


QUIET = Noise(0.01)


def line(start: float, slope: float, count: int) -> Series:
    """`count` values from `start`, each `slope` more than the one before."""
    return [start + slope * at for at in range(count)]


def decay(start: float, end: float, count: int, half: float = 40) -> Series:
    """`count` values that fall from `start` towards `end` and are half-way after `half` of them."""
    return [end + (start - end) * 0.5 ** (at / half) for at in range(count)]


@dataclass(frozen=True, slots=True)
class Table:
    """Records of one run: a column for each metric, `first` the step of the first record, `every` the steps between."""

    columns: Mapping[str, Sequence[float]]
    first: int = 1
    every: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> list[dict[str, float]]:
        """A dictionary for each record, with its step."""
        length = max(map(len, self.columns.values()))
        return [
            {"step": self.first + at * self.every}
            | {name: values[at] for name, values in self.columns.items() if at < len(values)}
            for at in range(length)
        ]

    def jsonl(self) -> str:
        """JSON lines, with the NaN that Python's own writer prints."""
        return "".join(json.dumps(row) + "\n" for row in self.rows())

    def csv(self) -> str:
        """A table with a header; a value that a record lacks is empty."""
        names = ["step", *self.columns]
        rows = (",".join(str(row.get(name, "")) for name in names) for row in self.rows())
        return "\n".join([",".join(names), *rows]) + "\n"

    def log(self, form: str = "step {step} loss {loss:.4f} grad_norm {grad_norm:.4f} lr {lr:.2e}") -> list[str]:
        """A log line for each record, laid out by a format string over step and columns."""
        return [form.format(**row) for row in self.rows()]


def lines(*parts: str | Iterable[str]) -> str:
    """The text of a log: single lines and lists of lines, one after the other."""
    flat = [line for part in parts for line in ([part] if isinstance(part, str) else part)]
    return "\n".join(flat) + "\n"
