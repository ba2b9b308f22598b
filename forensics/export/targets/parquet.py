"""Parquet: one row per point with every column of the table `metrics`, exact; polars, DuckDB and pyarrow read it."""

from __future__ import annotations

import io

from forensics.export.target import Export, File, Selection, Target


def write(selection: Selection) -> Export:
    """Write the rows as they are: types, nulls, NaN and the infinities stay."""
    buffer = io.BytesIO()
    selection.points.write_parquet(buffer, compression="zstd")
    return Export((File("", buffer.getvalue()),))


TARGET = Target("parquet", write)
