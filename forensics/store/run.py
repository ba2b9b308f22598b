"""A run as tables in memory or on disk, behind one interface: `run.scan(table)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from pathlib import PurePath
from typing import Any, TypeVar

import polars as pl

from forensics.store.packed import Packed, packed_from
from forensics.store.schema import TABLES, conform

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """The tables of one run; a table that nothing wrote is empty, with its schema.

    `name` is what the user called the run. Frames are sorted by (source, seq) where the table has a `seq`. `bases`
    are the runs that it is compared with, where some were given. `held` are tables that are in memory, packed.
    `thresholds` are those that the user changed, by their type: every analysis asks for its own here, so a setting acts
    on each command that shows the analysis.
    """

    name: str
    frames: Mapping[str, pl.LazyFrame] = field(default_factory=dict[str, pl.LazyFrame])
    bases: tuple[Run, ...] = field(default=(), repr=False, compare=False)
    held: Mapping[str, Packed] = field(default_factory=dict[str, Packed], repr=False, compare=False)
    thresholds: Mapping[type, Any] = field(default_factory=dict[type, Any], repr=False, compare=False)
    _derived: dict[Callable[[Run], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def scan(self, table: str) -> pl.LazyFrame:
        """Give one table lazily; raises `KeyError` for a table that the schema does not name."""
        return self.frames[table] if table in self.frames else _empty(table)

    def collect(self, table: str) -> pl.DataFrame:
        """Give one table whole; raises `KeyError` for a table that the schema does not name."""
        return self.frames[table].collect() if table in self.frames else nothing(table)

    def derived(self, make: Callable[[Run], T]) -> T:
        """Give what `make` computes from this run; it is computed at the first call and kept as long as the run."""
        if make not in self._derived:
            self._derived[make] = make(self)
        return self._derived[make]

    def threshold(self, kind: type[T]) -> T:
        """Give the thresholds of one kind, as the user set them or as they are shipped."""
        return self.thresholds[kind] if kind in self.thresholds else kind()

    def under(self, thresholds: Mapping[type, Any]) -> Run:
        """Give the same run, judged by other thresholds; nothing that was derived before is kept."""
        return replace(self, thresholds=thresholds) if thresholds != self.thresholds else self

    def renamed(self, names: Mapping[str, str]) -> Run:
        """Give the same run with other canonical names for some printed ones; nothing that was derived is kept."""
        if not names:
            return self
        if "metrics" in self.held:
            renamed = self.held["metrics"].renamed(names)
            frames, held = {**self.frames, "metrics": renamed.lazy()}, {**self.held, "metrics": renamed}
            return replace(self, frames=frames, held=held)
        given = pl.col("raw_name").replace_strict(names, default=pl.col("name"), return_dtype=pl.String)
        return replace(self, frames={**self.frames, "metrics": self.scan("metrics").with_columns(name=given)})

    def without(self, *tables: str) -> Run:
        """Give the same run as if nothing had written these tables."""
        frames = {name: frame for name, frame in self.frames.items() if name not in tables}
        return replace(self, frames=frames, held={name: held for name, held in self.held.items() if name not in tables})

    def packed_metrics(self) -> Packed:
        """Give all metric rows in few bytes each; those from disk are read at every call."""
        return self.held["metrics"] if "metrics" in self.held else packed_from(self.scan("metrics"))


def derived(make: Callable[[Run], T]) -> Callable[[Run], T]:
    """Make a function of a run one that is computed at its first call and kept as long as the run."""

    @wraps(make)
    def kept(run: Run) -> T:
        return run.derived(make)

    return kept


@cache
def nothing(table: str) -> pl.DataFrame:
    """Give a table that nothing wrote; made once, as half of all questions are about one."""
    return pl.DataFrame(schema=dict(TABLES[table]))


@cache
def _empty(table: str) -> pl.LazyFrame:
    return nothing(table).lazy()


def run_of(name: str, tables: Mapping[str, pl.DataFrame]) -> Run:
    """Build an in-memory run from frames that may lack columns; they are conformed to the schema."""
    return Run(name, {table: conform(table, frame).lazy() for table, frame in tables.items()})


def joined(name: str, runs: Mapping[str, Run]) -> Run:
    """Concatenate the tables of `runs`, which are keyed by the path that each was read from.

    A run that is one file has that path as its source; the sources of a folder are below it.
    """
    frames: dict[str, list[pl.LazyFrame]] = {}
    for path, run in runs.items():
        named = pl.when(pl.col("source") == PurePath(path).name).then(pl.lit(path))
        full = named.otherwise(pl.concat_str(pl.lit(f"{path}/"), "source"))
        for table, frame in run.frames.items():
            frames.setdefault(table, []).append(frame.with_columns(full.alias("source")))
    return Run(name, {table: pl.concat(parts) for table, parts in frames.items()})
