"""A CSV that pandas reads back exactly, with the lines of Python that do it.

Parquet would need pyarrow or fastparquet, which pandas does not bring, and a pickle runs code when it is opened. So
this is text that pandas alone can read: names as they are (nothing disarmed for spreadsheets: `--to csv` does that),
floats that give the same 64 bits (read as text first, because older pandas rounds), 64-bit integers with nulls. A null
and a NaN are one thing to a float column of pandas; `value_class` keeps them apart.
"""

from __future__ import annotations

import polars as pl

from forensics.export.target import Export, File, Selection, Target
from forensics.store.schema import TABLES

_DTYPES: dict[type[pl.DataType], str] = {pl.String: "str", pl.Int64: "Int64", pl.Int32: "Int32", pl.Float64: "str"}
_TYPED = ", ".join(f"{name!r}: {_DTYPES[type(dtype)]!r}" for name, dtype in TABLES["metrics"].items())
_OPENING = (
    "import pandas as pd",
    f"types = {{{_TYPED}}}",
    "points = pd.read_csv(FILE, dtype=types, keep_default_na=False, na_values=[''])",
    "points = points.astype({'epoch': 'float64', 'value': 'float64'})",
    "axes = ['source', 'attempt', 'rank', 'step']",
    "table = points.drop_duplicates([*axes, 'name'], keep='last').pivot(index=axes, columns='name', values='value')",
)


def write(selection: Selection) -> Export:
    """Write one row per point."""
    return Export((File("", selection.points.write_csv(quote_style="non_numeric").encode()),))


TARGET = Target("pandas", write, _OPENING)
