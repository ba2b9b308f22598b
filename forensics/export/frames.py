"""A polars frame as one of pandas, column by column, without pyarrow.

A NaN stays a NaN and a null stays a null: floats with nulls become pandas' own `Float64` with a mask, integers with
nulls `Int64` and the like, so that no integer is rounded. Text is pandas' `string` held by Python, dates are
datetime64 with their zone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs] # it ships none


def pandas_of(frame: pl.DataFrame) -> pd.DataFrame:
    """Give the same rows and columns; columns that pandas has no type for hold Python values.

    Raises `ImportError` when pandas is not installed.
    """
    pandas: Any = import_module("pandas")
    columns = [_column(pandas, frame.get_column(name)) for name in frame.columns]
    if not columns:
        return pandas.DataFrame(index=pandas.RangeIndex(frame.height))
    made = pandas.concat([pandas.Series(c, copy=False) for c in columns], axis=1)
    made.columns = frame.columns
    return made


def _column(pandas: Any, series: pl.Series) -> Any:  # noqa: ANN401, PLR0911 - the array that pandas has for a type
    dtype = series.dtype
    if dtype.is_integer() and series.dtype != pl.Int128:
        return _masked(pandas.arrays.IntegerArray, series, 0)
    if dtype.is_float():
        return _masked(pandas.arrays.FloatingArray, series, 0.0)
    if dtype == pl.Boolean:
        return _masked(pandas.arrays.BooleanArray, series, fill=False)
    if dtype == pl.String:
        return pandas.array(series.to_list(), dtype=pandas.StringDtype("python"))
    if dtype == pl.Categorical or dtype == pl.Enum:  # noqa: PLR1714 - a type of polars is equal to, not one of
        return pandas.Categorical(series.cast(pl.String).to_list(), categories=_categories(series))
    if dtype.is_temporal() and dtype != pl.Time:
        return _instants(pandas, series)
    return pandas.array(series.to_list(), dtype=object)


def _masked(array: Any, series: pl.Series, fill: float) -> Any:  # noqa: ANN401 - same
    """Plain numpy where nothing is null, else values beside a mask: a float keeps NaN and null apart."""
    if not series.null_count():
        return series.to_numpy().copy()
    return array(series.fill_null(fill).to_numpy().copy(), series.is_null().to_numpy().copy())


def _categories(series: pl.Series) -> list[str]:
    if isinstance(series.dtype, pl.Enum):
        return series.dtype.categories.to_list()
    return series.cast(pl.String).drop_nulls().unique().sort().to_list()


def _instants(pandas: Any, series: pl.Series) -> Any:  # noqa: ANN401 - same
    dtype = series.dtype
    if dtype == pl.Date:  # pandas counts dates in seconds at the coarsest
        return pandas.DatetimeIndex(series.to_numpy().astype("datetime64[s]"))
    values = series.to_physical().fill_null(np.iinfo(np.int64).min).to_numpy()  # numpy's NaT
    unit = getattr(dtype, "time_unit", "us")
    if dtype == pl.Duration:
        return pandas.TimedeltaIndex(values.view(f"timedelta64[{unit}]"))
    index = pandas.DatetimeIndex(values.view(f"datetime64[{unit}]"))
    zone = getattr(dtype, "time_zone", None)
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)
