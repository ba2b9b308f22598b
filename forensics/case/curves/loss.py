"""A metric as one curve per source, attempt, rank and printed name: the finite rows in record order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.case.evidence import at_step
from forensics.case.joined.stores import stores_of
from forensics.case.series import Index, RowNumbers, chosen, compact, index_of, whole
from forensics.case.steps import SERIES
from forensics.stats.spread import Floats
from forensics.store.even import Even
from forensics.store.packed import Packed
from forensics.store.run import Run, derived

_COLUMNS = (*SERIES, "seq", "line", "byte", "step", "gstep", "t_ns", "name", "value", "value_class")


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The finite rows of one series in record order; equal only to itself, so that it can be a key.

    `held` are the numbers of its rows in the packed `table`, from which values are taken when they are asked for:
    whoever asks more than once keeps them. `ends_nonfinite`: the last record, left out here, is not a finite number.
    """

    source: str
    attempt: int
    rank: int | None
    raw_name: str
    table: Packed = field(repr=False)
    held: RowNumbers = field(repr=False)
    ends_nonfinite: bool

    def __len__(self) -> int:
        """Count the values."""
        return len(self.held)

    @property
    def places(self) -> NDArray[np.uint32]:
        """The numbers of the rows in the table, shape (n,)."""
        return whole(self.held)

    @property
    def values(self) -> Floats:
        """The values, shape (n,)."""
        return self.table.numbers("value", self.places)

    @property
    def at(self) -> pl.Series:
        """The steps of the optimizer, else of the file; null where none was printed."""
        steps = self.table.gather("gstep", self.places).alias("at")
        if not steps.null_count():
            return steps
        return steps.zip_with(steps.is_not_null(), self.table.gather("step", self.places))

    @property
    def epochs(self) -> Floats:
        """The epochs, NaN where none was printed."""
        return self.table.gather("epoch", self.places).fill_null(float("nan")).to_numpy()

    def row(self, index: int) -> Mapping[str, Any]:
        """Give one row by its position, with the columns that evidence needs and `at`; from the end where negative."""
        row = {name: self.cell(name, index) for name in _COLUMNS}
        return row | {"attempt": row["attempt"] or 0, "at": self.step(index)}

    def step(self, index: int) -> int | None:
        """Give the step of one row, None when none was printed."""
        step = self.cell("gstep", index)
        return self.cell("step", index) if step is None else step

    def where(self, index: int) -> str:
        """Say at which step a row is, or at which epoch where no step was printed."""
        return at_step(self.step(index), float(self.epochs[index]))

    def cell(self, column: str, index: int) -> Any:  # noqa: ANN401 - a value of a table
        """Give one value of a row: a whole row takes as long as thirteen of them."""
        place = range(len(self))[index]
        return self.table.value(column, self.held.one(place) if isinstance(self.held, Even) else int(self.held[place]))


#: What the rules about learning ask for; read together, as one pass over a large table is what costs.
_TOGETHER = ("loss", "eval_loss", "grad_norm", "lr", "weights_checksum", "param_norm")


def curves(run: Run, name: str) -> tuple[Curve, ...]:
    """Give the curves of one of these metrics, in the order of their sources.

    They are remembered with the run, as several rules ask for the same metric. Raises `KeyError` for another metric.
    """
    return _curves(run)[name]


@derived
def _curves(run: Run) -> Mapping[str, tuple[Curve, ...]]:
    index = index_of(run)
    wanted = chosen(index, pl.col("name").is_in(_TOGETHER), stores_of(run).left_out)
    if not wanted.any():
        return dict.fromkeys(_TOGETHER, ())
    found: dict[str, list[tuple[tuple[str, int, int], Curve]]] = {name: [] for name in _TOGETHER}
    for (name, *key), own in _series(index, wanted).items():
        held = index.records(own)
        curve = _curve(index, (name, *key), own, held)
        if len(curve):
            place = curve.source, int(curve.table.value("seq", int(held[0]))), int(held[0])
            found[name].append((place, curve))
    return {name: tuple(curve for _, curve in sorted(many, key=lambda one: one[0])) for name, many in found.items()}


def _curve(index: Index, key: tuple[Any, ...], own: Sequence[int], held: NDArray[np.uint32]) -> Curve:
    name, source, attempt, rank, raw_name = key
    finite, ends_nonfinite = held, False
    if not index.is_finite(own):
        is_finite = (index.table.short("value_class", held) == "finite").to_numpy()
        finite, ends_nonfinite = held[is_finite], bool(len(held)) and not is_finite[-1]
    own_rows = compact(finite, index.table)
    return Curve(source, attempt, rank, raw_name or name, index.table, own_rows, ends_nonfinite=ends_nonfinite)


def _series(index: Index, wanted: NDArray[np.bool_]) -> dict[tuple[Any, ...], list[int]]:
    """Places among `keys` by name, source, attempt, rank and raw name; one without an attempt is of attempt 0."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    keys = index.keys.select("name", "source", pl.col("attempt").fill_null(0), "rank", "raw_name").rows()
    for i in np.flatnonzero(wanted).tolist():
        groups.setdefault(keys[i], []).append(i)
    return groups


def beside(run: Run, curve: Curve, name: str) -> Curve | None:
    """Give the longest curve of another metric from the same source, attempt and rank; None when there is none.

    Where each file holds one metric, as MLflow's do, it is the curve of the file beside it.
    """
    near = _by_file(run).get((name, curve.source, curve.attempt), ())
    if not near and curve.source in _of_one_metric(run):
        place = (name, _folder(curve.source), curve.attempt)
        near = tuple(c for rank in (curve.rank, None) if (c := _by_folder(run).get((*place, rank))) is not None)
    return max((c for c in near if c.rank in {curve.rank, None}), key=len, default=None)


def _folder(source: str) -> str:
    return source.rpartition("/")[0]


@derived
def _of_one_metric(run: Run) -> frozenset[str]:
    """The sources that hold one metric alone."""
    names: dict[str, set[str]] = {}
    for name, source, _ in _by_file(run):
        names.setdefault(source, set()).add(name)
    return frozenset(source for source, held in names.items() if len(held) == 1)


@derived
def _by_folder(run: Run) -> Mapping[tuple[str, str, int, int | None], Curve]:
    """Of files of one metric, the longest curve by metric, folder, attempt and rank: a folder may hold thousands."""
    found: dict[tuple[str, str, int, int | None], Curve] = {}
    for (name, source, attempt), many in _by_file(run).items():
        for curve in many if source in _of_one_metric(run) else ():
            place = (name, _folder(source), attempt, curve.rank)
            found[place] = max(found.get(place, curve), curve, key=len)
    return found


@derived
def _by_file(run: Run) -> Mapping[tuple[str, str, int], tuple[Curve, ...]]:
    """The curves of each metric, source and attempt: one look at each curve, where each of n would look at n."""
    found: dict[tuple[str, str, int], list[Curve]] = {}
    for name, many in _curves(run).items():
        for curve in many:
            found.setdefault((name, curve.source, curve.attempt), []).append(curve)
    return {place: tuple(near) for place, near in found.items()}
