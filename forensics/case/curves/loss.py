"""A metric as one curve per source, attempt, rank and printed name: the finite rows in record order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.case.joined.stores import counted
from forensics.case.steps import SERIES, by_record
from forensics.store.run import Run

Floats = NDArray[np.float64]

_COLUMNS = (*SERIES, "seq", "line", "byte", "step", "gstep", "t_ns", "name", "value", "value_class")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The finite rows of one series in record order; equal only to itself, so that it can be a key.

    `rows` has the columns of the metrics table that evidence needs, and `at`. `values` are the same values as floats.
    `ends_nonfinite`: the last record of the series, left out here, is not a finite number.
    """

    rows: pl.DataFrame
    values: Floats
    ends_nonfinite: bool

    def __len__(self) -> int:
        """Count the values."""
        return self.rows.height

    @property
    def source(self) -> str:
        """The file that holds the series."""
        return str(self.rows["source"][0])

    @property
    def raw_name(self) -> str:
        """The name as printed."""
        return str(self.rows["raw_name"][0] or self.rows["name"][0])

    @property
    def rank(self) -> int | None:
        """The rank that logged the series."""
        return self.rows["rank"][0]

    @property
    def attempt(self) -> int:
        """The attempt it belongs to."""
        return int(self.rows["attempt"][0])

    def row(self, index: int) -> Mapping[str, Any]:
        """Give one row by its position; negative positions count from the end."""
        return self.rows.row(index, named=True)

    def step(self, index: int) -> int | None:
        """Give the step of one row, None when none was printed."""
        return self.rows["at"][index]


#: What the rules about learning ask for; read together, as one pass over a large table is what costs.
_TOGETHER = ("loss", "eval_loss", "grad_norm", "lr")


def curves(run: Run, name: str) -> tuple[Curve, ...]:
    """Give the curves of the loss, evaluation loss, gradient norm or learning rate, in the order of their sources.

    They are remembered with the run, as several rules ask for the same metric.

    Raises:
        KeyError: for another metric.
    """
    return run.derived(_curves)[name]


def _curves(run: Run) -> Mapping[str, tuple[Curve, ...]]:
    wanted = counted(run, pl.col("name").is_in(_TOGETHER)).filter(pl.col("value_class") != "null")
    rows = by_record(wanted.select(_COLUMNS)).collect()
    found: dict[str, list[Curve]] = {name: [] for name in _TOGETHER}
    for part in rows.partition_by("name", *SERIES, maintain_order=True) if rows.height else ():
        if len(curve := _curve(part)):
            found[curve.rows["name"][0]].append(curve)
    return {name: tuple(sorted(many, key=lambda c: c.source)) for name, many in found.items()}


def _curve(rows: pl.DataFrame) -> Curve:
    finite = rows if (rows["value_class"] == "finite").all() else rows.filter(pl.col("value_class") == "finite")
    return Curve(finite, finite["value"].to_numpy(), ends_nonfinite=rows["value_class"][-1] != "finite")


def beside(run: Run, curve: Curve, name: str) -> Curve | None:
    """Give the longest curve of another metric from the same source, attempt and rank; None when there is none."""
    near = run.derived(_by_file).get((name, curve.source, curve.attempt), ())
    return max((c for c in near if c.rank in {curve.rank, None}), key=len, default=None)


def _by_file(run: Run) -> Mapping[tuple[str, str, int], tuple[Curve, ...]]:
    """The curves of each metric, source and attempt: one look at each curve, where each of n would look at n."""
    found: dict[tuple[str, str, int], list[Curve]] = {}
    for name, many in run.derived(_curves).items():
        for curve in many:
            found.setdefault((name, curve.source, curve.attempt), []).append(curve)
    return {place: tuple(near) for place, near in found.items()}
