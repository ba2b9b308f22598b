"""Parquet files of metrics: the history artifact of W&B, a saved `run.history()`, any flat table with a step.

A null was not logged. A NaN beside nulls is a NaN; in a W&B history without a single null, NaN may mean "not logged",
so it is kept as a null and stated. Rows may be in any order: rows of a W&B history are numbered by their `_step`, which
may be a double. Columns that are no numbers, or whose pages contradict the footer, are stated.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.dialects.names import canonical
from forensics.errors import InputError, LimitExceeded, NotMine
from forensics.formats.kit import Limits, Opened, Out, Sniff, ingester
from forensics.formats.rows.axes import EPOCHS, STEPS, TIMES, first_of
from forensics.formats.rows.metrics import unix_ns_of
from forensics.formats.wandb._define import TRAINER_STEPS
from forensics.formats.wandb.exports._rows import Extent, state_extent
from forensics.formats.wandb.exports.columns import HISTORY_AXES, INDEX
from forensics.io.budget import Budget
from forensics.io.parquet_pages import MAGIC, Column, Shape, shape_of
from forensics.values import replace

_SLICE_CELLS = 1 << 20
_COLUMNS_AT_ONCE = 32
_NUMBERS = frozenset(("int32", "int64", "float", "double"))
_TEXT_BYTES = 64
#: Cells of the axes of a row; and values that are decoded for a unit of work, at 10 ns each.
_AXIS_CELLS, _VALUES_OF_A_UNIT = 6, 16
_UNDECODED = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


class _Table(Struct, frozen=True):
    """A checked file: its shape, its metric columns, and one row of axes for each of its rows."""

    data: bytes
    shape: Shape
    metrics: tuple[Column, ...]
    axes: pl.DataFrame
    history: bool
    budget: Budget
    slice_rows: int
    null_padded: bool = True


@ingester(
    "wandb_history_parquet", version=1, sniff=Sniff(glob=("*.parquet",), magic=(MAGIC,)), emits=("metrics", "facts")
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one table.

    Raises `NotMine` when no column is a step; `InputError` when the footer is missing or damaged; `LimitExceeded` above
    `limits.json_bytes` on disk, or far more cells than the file can hold.
    """
    if opened.head(4) != MAGIC:
        raise NotMine("no Parquet file")
    if opened.size_bytes > limits.json_bytes:
        raise LimitExceeded("bytes of a Parquet file", limit=limits.json_bytes, actual=opened.size_bytes)
    data = opened.span(0, opened.size_bytes)
    shape = shape_of(data, limits)
    try:
        table = _table(data, shape, opened.budget, limits)
    except _UNDECODED as error:
        message = f"the steps cannot be decoded: {type(error).__name__}"
        raise InputError(message) from error
    refused = dict(shape.refused)
    if table.history:
        table = replace(table, null_padded=any(series.null_count() for _, _, series in _slices(table, {})))
    for part in _parts(table, refused, opened, out):
        out.rows("metrics", part)
    for name, why in refused.items():
        out.issue("column-not-read", f"{name[:80]!r}: {why}")
    if table.history:
        _state_history(table, out)
    out.format("W&B history parquet" if table.history else "parquet by step")
    out.account(read_bytes=opened.size_bytes, records=shape.rows)


def _table(data: bytes, shape: Shape, budget: Budget, limits: Limits) -> _Table:
    numbers = [column for column in shape.columns if column.kind in _NUMBERS]
    names = [column.name for column in numbers]
    history = "_step" in names
    step = names.index("_step") if history else first_of(names, STEPS)
    epoch, time = first_of(names, EPOCHS), first_of(names, TIMES)
    axis = epoch if step is None else step
    if axis is None or not shape.rows:
        raise NotMine("no column is a step")
    used = {index for index in (axis, epoch, time) if index is not None}
    skipped = HISTORY_AXES if history else frozenset[str]()
    metrics = tuple(
        column
        for column in shape.columns
        if column.kind in {*_NUMBERS, "bytes"}
        and column.name not in {names[index] for index in used}
        and column.name not in skipped
        and column.name
        and not INDEX.fullmatch(column.name)
    )
    trainer = next((name for name in TRAINER_STEPS if name in names), None) if history else None
    wanted = {"step": axis, "epoch": epoch, "t": time}
    read_as = {key: names[index] for key, index in wanted.items() if index is not None}
    budget.charge(_AXIS_CELLS * shape.rows)
    axes = _axes(_decode(data, {**read_as, **({"gstep": trainer} if trainer else {})}, 0, shape.rows), sort=history)
    rows = max(min(_SLICE_CELLS // min(max(len(metrics), 1), _COLUMNS_AT_ONCE), limits.batch_rows), 1)
    return _Table(data, shape, metrics, axes, history, budget, rows)


def _decode(data: bytes, columns: dict[str, str], offset: int, rows: int) -> pl.DataFrame:
    """Some columns of some rows, under the names that are the keys of `columns`."""
    lazy = pl.scan_parquet(data).select(pl.col(name).alias(key) for key, name in columns.items())
    return lazy.slice(offset, rows).collect()


def _axes(raw: pl.DataFrame, *, sort: bool) -> pl.DataFrame:
    """Axes of every row, with `seq`: the order of the rows, by step where `sort` is set."""
    have = set(raw.columns)
    nulls = pl.lit(None, dtype=pl.Int64)
    frame = raw.select(
        pl.int_range(pl.len()).alias("row"),
        _whole("step", whole=raw["step"].dtype.is_integer()),
        _whole("gstep", whole=raw["gstep"].dtype.is_integer()) if "gstep" in have else nulls.alias("gstep"),
        (pl.col("epoch").cast(pl.Float64) if "epoch" in have else pl.lit(None, dtype=pl.Float64)).alias("epoch"),
        t_ns=unix_ns_of(raw["t"].cast(pl.Float64, strict=False)) if "t" in have else nulls,
    )
    if sort:
        frame = frame.sort("step", maintain_order=True)
    filled = frame.with_columns(pl.int_range(pl.len()).alias("seq"), pl.col("gstep").forward_fill())
    return filled.sort("row").drop("row")


def _whole(name: str, *, whole: bool) -> pl.Expr:
    value = pl.col(name)
    if whole:
        return value.cast(pl.Int64, strict=False).alias(name)
    return value.cast(pl.Float64).fill_nan(None).cast(pl.Int64, strict=False).alias(name)  # an axis, not a metric


def _slices(table: _Table, refused: dict[str, str]) -> Iterator[tuple[Column, int, pl.Series]]:
    """All metric columns in bounded pieces: the column, the offset of the first row, and the cells."""
    for first in range(0, len(table.metrics), _COLUMNS_AT_ONCE):
        columns = table.metrics[first : first + _COLUMNS_AT_ONCE]
        for offset in range(0, table.shape.rows, table.slice_rows):
            rows = min(table.slice_rows, table.shape.rows - offset)
            table.budget.charge(len(columns) * rows // _VALUES_OF_A_UNIT)
            for column, series in _cells(table.data, columns, offset, table.slice_rows, refused):
                yield column, offset, series


def _cells(
    data: bytes, columns: tuple[Column, ...], offset: int, rows: int, refused: dict[str, str]
) -> Iterator[tuple[Column, pl.Series]]:
    """Cells of some rows; columns that cannot be decoded are found one by one and put down in `refused`."""
    sound = [column for column in columns if column.name not in refused]
    try:
        frame = _decode(data, {str(i): column.name for i, column in enumerate(sound)}, offset, rows)
    except _UNDECODED as error:
        if len(columns) == 1:
            refused[columns[0].name] = f"its pages cannot be decoded: {type(error).__name__}"
            return
        for column in sound:
            yield from _cells(data, (column,), offset, rows, refused)
    else:
        yield from zip(sound, frame, strict=True)


def _numbers(series: pl.Series) -> pl.Series | None:
    """The cells as floats, texts that print a number among them; None for a column that holds none."""
    if series.dtype.is_numeric():
        return series.cast(pl.Float64, strict=False)
    if series.dtype != pl.String:
        return None
    short = pl.when(pl.col("t").str.len_bytes() < _TEXT_BYTES).then(pl.col("t").str.strip_chars())
    parsed = pl.DataFrame({"t": series}).select(short.cast(pl.Float64, strict=False)).to_series()
    return parsed if parsed.null_count() < parsed.len() else None


def _parts(table: _Table, refused: dict[str, str], opened: Opened, out: Out) -> Iterator[pl.DataFrame]:
    unread: dict[str, None] = {}
    ambiguous = 0
    for column, offset, series in _slices(table, refused):
        values = _numbers(series)
        if values is None:
            if series.null_count() < series.len():
                unread[column.name] = None
            continue
        part = _points(column.name, values, table.axes.slice(offset, series.len()), opened)
        if table.history and not table.null_padded and (nan := int(values.is_nan().sum())):
            ambiguous += nan
            part = part.with_columns(pl.col("value").fill_nan(None))  # stated below: what it was cannot be known
        yield part
    if unread:
        shown = ", ".join(repr(name[:80]) for name in list(unread)[:3])
        out.issue("column-not-read", f"columns without a number: {shown}", count=len(unread))
    if ambiguous:
        out.issue(
            "nan-not-logged", "NaN stands for what was not logged here, or for a NaN: kept as null", count=ambiguous
        )


def _points(name: str, values: pl.Series, axes: pl.DataFrame, opened: Opened) -> pl.DataFrame:
    means = canonical(name)
    source = opened.source
    return axes.with_columns(
        value=values * means.scale if means.scale != 1 else values,
        name=pl.lit(means.canonical),
        raw_name=pl.lit(name),
        attempt=pl.lit(source.attempt or 0, dtype=pl.Int32),
        rank=pl.lit(source.rank, dtype=pl.Int32),
    ).filter(pl.col("value").is_not_null())


def _state_history(table: _Table, out: Out) -> None:
    steps = table.axes["step"].drop_nulls()
    if not steps.is_sorted():
        out.issue("rows-unsorted", "the rows are not in the order of `_step`; they were numbered by it")
    low, high = steps.min(), steps.max()
    extent = (
        Extent(table.shape.rows, low, high, steps.n_unique())
        if isinstance(low, int) and isinstance(high, int)
        else None
    )
    state_extent(extent, table.shape.rows, out)
