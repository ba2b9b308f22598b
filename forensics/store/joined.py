"""Several runs as one: the same tables, each source named by where it was given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

import polars as pl

from forensics.store.run import Run


def joined(name: str, runs: Mapping[str, Run]) -> Run:
    """Concatenate the tables of `runs`, which are keyed by the path that each was read from.

    A run that is one file has that path as its source; the sources of a folder stand below it.
    """
    frames: dict[str, list[pl.LazyFrame]] = {}
    for path, run in runs.items():
        named = pl.when(pl.col("source") == PurePath(path).name).then(pl.lit(path))
        full = named.otherwise(pl.concat_str(pl.lit(f"{path}/"), "source"))
        for table, frame in run.frames.items():
            frames.setdefault(table, []).append(frame.with_columns(full.alias("source")))
    return Run(name, {table: pl.concat(parts) for table, parts in frames.items()})
