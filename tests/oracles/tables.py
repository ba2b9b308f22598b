"""What the oracles of tables share: one reader over bytes, no hand-over above the bound, and values that compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from hypothesis import strategies as st

from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace

Read = Callable[..., None]
NUMBER = st.floats(width=64)
BATCH_ROWS = st.sampled_from([1, 5, 1000])
BLOCK_BYTES = st.sampled_from([1, 16, 4096])


class Bounded(SourceSink):
    """A sink that refuses more rows at once than the limits allow."""

    def rows(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        if table in {"metrics", "eval_samples"}:
            size = columns.height if isinstance(columns, pl.DataFrame) else len(next(iter(columns.values())))
            assert size <= self.limits.batch_rows
        super().rows(table, columns)


def read(reader: Read, name: str, data: bytes, **bounds: int) -> Bounded:
    """What a reader says about these bytes under these limits."""
    limits = replace(DEFAULT, **bounds)
    opened = opened_bytes(name, data, limits)
    sink = Bounded(opened.source, limits)
    reader(opened, sink, limits)
    return sink


def classed(value: float | None) -> str:
    """The class of a value, said anew."""
    if value is None:
        return "null"
    return "nan" if math.isnan(value) else "finite" if math.isfinite(value) else "+inf" if value > 0 else "-inf"


def rows(sink: SourceSink, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the metrics, floats by their digits, so that NaN equals NaN and -0.0 does not equal 0.0."""
    frame = sink.frames().get("metrics")
    return [] if frame is None else [tuple(map(shown, row)) for row in frame.select(columns).rows()]


def shown(cell: object) -> object:
    """A float as its digits; anything else as it is."""
    return repr(cell) if isinstance(cell, float) else cell
