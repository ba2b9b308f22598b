"""The training loss as one series per source, attempt and rank, beside the evaluation loss of the same run."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.case.joined.stores import counted
from forensics.store.run import Run


class Series(Struct, frozen=True):
    """One metric over the steps of one attempt, finite values only, in the order of the file.

    The tuples have equal length; steps, lines, bytes and times (nanoseconds) are None where not printed.
    `ends_nonfinite`: what was last logged, and is left out here, is not a finite number.
    """

    name: str
    raw_name: str
    source: str
    attempt: int | None
    rank: int | None
    steps: tuple[int | None, ...]
    values: tuple[float, ...]
    lines: tuple[int | None, ...]
    bytes: tuple[int | None, ...]
    times: tuple[int | None, ...]
    ends_nonfinite: bool

    def __len__(self) -> int:
        """Count the values."""
        return len(self.values)


def series_of(run: Run, name: str) -> Iterator[Series]:
    """Give the series of one canonical metric, in the order of their sources.

    When several raw names share the canonical name in one source, each is a series of its own.
    """
    keys = ["source", "attempt", "rank", "raw_name"]
    rows = (
        counted(run, pl.col("name") == name)
        .filter(pl.col("value_class") != "null")
        .sort("source", "seq", maintain_order=True)
        .collect()
    )
    for (source, attempt, rank, raw), whole in rows.group_by(keys, maintain_order=True):
        part = whole.filter(pl.col("value_class") == "finite")
        yield Series(
            name=name,
            raw_name=str(raw or name),
            source=str(source),
            attempt=attempt if isinstance(attempt, int) else None,
            rank=rank if isinstance(rank, int) else None,
            steps=tuple(part["step"].to_list()),
            values=tuple(part["value"].to_list()),
            lines=tuple(part["line"].to_list()),
            bytes=tuple(part["byte"].to_list()),
            times=tuple(part["t_ns"].to_list()),
            ends_nonfinite=whole["value_class"][-1] != "finite",
        )
