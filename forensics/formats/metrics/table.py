"""Tables of metrics as delimited text: with a step, epoch or loss in the first line, or a first column that counts.

Lightning's `metrics.csv`, YOLO's `results.csv`, `progress.csv` and `progress.txt` of reinforcement learning. An empty
cell was not logged; `nan` is a NaN. A line that begins with `#` and is no header is a comment. A column whose first
number has a unit (`4100MB`) has it in each cell. A header that comes again begins a new table. Where the table counts
in epochs only, the epoch is the step, because it is the file's own axis. Columns under `config/` are facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from forensics.dialects.names import ENUMERATED, canonical, counts, falls, measured, unit_of
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.axes import DATES, EPOCHS, RANKS, SPLITS, STEPS, TIMES, first_of
from forensics.formats.rows.delimited import MOST_COLUMNS, Row, Sizes, Stretch, first_rows, refused, stretches_of
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import dated, number
from forensics.formats.rows.metrics import At, MetricRows, Places, int64, unix_ns, unix_ns_of
from forensics.formats.rows.splits import split_named, within
from forensics.formats.rows.text import settle
from forensics.formats.wandb.exports.columns import INDEX, is_chart, is_history
from forensics.io.columns import as_column
from forensics.knowledge.vocabulary import keys_of, stands_for
from forensics.patterns import lazily
from forensics.values import replace

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    from forensics.formats.metrics._columns import Columns

#: Seconds since 1970, from 2014 to 2033.
_UNIX_S = (1.4e9, 2e9)
_SAMPLE_ROWS = 20
_CONFIG = "config/"
_FACTS = 1_000
_PARTS = lazily(r"[_.-]")


class _Header(Struct, frozen=True):
    names: tuple[str, ...]
    step: int | None
    epoch: int | None
    time: int | None
    #: columns that hold metrics, and the unit behind the numbers of some
    metrics: tuple[int, ...]
    units: Mapping[int, str] = field(default_factory=dict[int, str])
    #: a column of dates, where no other one is the time
    date: int | None = None
    #: a column that names the number beside it, of a long table with a row for each number
    name: int | None = None
    #: what the path of the file says of its only metric, whose column is called a value
    title: str = ""
    #: a column of the rank that a row is of, where the table holds those of several
    rank: int | None = None
    #: a column of the split that a row is of, where the table holds training and held-out rows
    split: int | None = None
    #: the steps are counted anew in each epoch
    in_epochs: bool = False
    #: no column counts, so that the rows do, from 1
    by_row: bool = False

    @property
    def is_by_rows(self) -> bool:
        """Whether a row is more than the numbers of its columns."""
        return self.name is not None or self.rank is not None

    def called(self, index: int) -> str:
        """The name of the metric of a column."""
        return self.title or self.names[index]

    def named(self, index: int, cells: Sequence[str]) -> str:
        """The name of the metric of a column in one row; a row that ends before it says of a split is of training."""
        name = self.called(index) if self.name is None else _cell(cells, self.name)
        return name if self.split is None else within(split_named(_cell(cells, self.split)) or "", name)

    def bare(self, index: int, cell: str) -> str:
        """A cell without the unit of its column."""
        return cell.strip().removesuffix(self.units.get(index, "")).rstrip()


class _Batches(Struct):
    """Counts the batches of all epochs, where each counts its own and the file begins with the first epoch."""

    epoch: float | None = None
    before: int | None = 0
    first: int = 0
    last: int = 0
    apart: int = 0

    def place(self, batch: int | None, epoch: float | None) -> int | None:
        """Give the place of a batch among all; an epoch whose first batch is 0 ends as far behind its last record."""
        if batch is None or epoch is None:
            return None
        if self.epoch is None or epoch < self.epoch:
            self.before, self.first = 0 if epoch <= 1 else None, batch
        elif epoch > self.epoch and batch <= self.last:
            ended = self.last + (self.apart if self.first == 0 else 0)
            self.before, self.first = None if self.before is None else self.before + ended, batch
        else:
            self.apart = batch - self.last
        self.epoch, self.last = epoch, batch
        return None if self.before is None else self.before + batch


class _State(Struct):
    header: _Header
    rank: int | None
    rows: MetricRows
    attempts: Attempts
    #: of the header that the file begins with
    first_name: str = ""
    batches: _Batches = field(default_factory=_Batches)
    seq: int = 0
    lost_bytes: int = 0
    config: dict[str, object] = field(default_factory=dict[str, object])


@ingester(
    "metrics_csv",
    version=10,
    sniff=Sniff(glob=("*.csv", "*.tsv", "progress.txt")),
    emits=("metrics", "facts"),
    growth=8,
)
def read(opened: Opened, out: Out, limits: Limits, sizes: Sizes | None = None) -> None:
    """Read one table, with the sizes of `Sizes` unless others are given.

    Raises `NotMine` when the first line names no step, epoch or loss, or no row below it has a number.
    """
    delimiter, header = _sniff(opened)
    sizes = sizes or Sizes()
    state = _State(header, opened.source.rank, MetricRows(out, limits), Attempts(opened.source.attempt or 0))
    state.first_name = header.names[0]
    for index, unit in header.units.items():
        state.rows.means(header.names[index], measured(header.names[index], (unit,), tuple))
    for part in stretches_of(opened, delimiter, out, sizes):
        if isinstance(part, Row):
            _one(part, state, out)
        else:
            _many(part, delimiter, sizes.least_lines, state, out)
    state.rows.close()
    write_facts(out, ((key, value, "config") for key, value in state.config.items()))
    out.format(_variant(header, opened.source.path))
    settle(opened, out, records=state.seq, lost_bytes=state.lost_bytes, reason="rows that do not fit the header")


def _one(row: Row, state: _State, out: Out) -> None:
    again = _header(row.cells) if row.cells and _first(row.cells) == state.first_name else None
    if state.header.by_row and [cell.strip() for cell in row.cells] == [*state.header.names]:
        return
    if again is not None:
        state.header = state.header if again.names == state.header.names else again
    elif _is_comment(row.cells):
        return
    elif wrong := refused(row, len(state.header.names), out):
        state.lost_bytes += wrong
    else:
        _row(row, state)
        state.seq += 1


def _many(stretch: Stretch, delimiter: str, least_lines: int, state: _State, out: Out) -> None:
    from forensics.formats.metrics import _columns as csv_columns  # noqa: PLC0415 - few runs have a table that is worth it

    width = len(state.header.names)
    shape = csv_columns.Shape(delimiter, state.first_name, width, least_lines)
    for part in csv_columns.fitting(stretch, shape):
        if isinstance(part, Row):
            _one(part, state, out)
        elif len(state.header.names) == width and not state.header.is_by_rows:
            _table(csv_columns.columns_of(part, delimiter, width), state)
        else:
            for row in part.rows(delimiter):
                _one(row, state, out)


def _is_comment(cells: Sequence[str]) -> bool:
    return bool(cells) and cells[0].lstrip().startswith("#")


def _first(cells: list[str]) -> str:
    return cells[0].strip().lstrip("# ")


def _counts(name: str) -> bool:
    return stands_for("counter_of_steps", name) or stands_for("counter_of_epochs", name)


def _axis(rows: Sequence[Sequence[str]]) -> tuple[int, int | None] | None:
    """Give the columns of the step and of a clock before it, where a fraction behind them falls as a loss does.

    The step is the first column, and rises evenly; where that holds seconds since 1970 it is the second.
    """
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        return None
    cells = ([number(cell.strip()) for cell in column] for column in zip(*rows, strict=True))
    told = [[float(value) for value in column if value is not None] for column in cells]
    clock = 0 if told[0] and all(_UNIX_S[0] <= value < _UNIX_S[1] for value in told[0]) else None
    first, *rest = told if clock is None else told[1:] or [[]]
    parts = (one for one in rest if len(one) == len(rows) and min(one) >= 0 and any(not v.is_integer() for v in one))
    trains = len(first) == len(rows) and counts(first) and any(falls(one) and len({*one}) > ENUMERATED for one in parts)
    return (0 if clock is None else 1, clock) if trains else None


def _header(cells: list[str], axis: tuple[int, int | None] | None = None) -> _Header | None:
    """The meaning of a first line; None when it names no axis, or contains numbers.

    `axis`: the columns of its step and of its clock, whatever their names.
    """
    if not 2 <= len(cells) <= MOST_COLUMNS:
        return None
    names = (_first(cells), *(cell.strip() for cell in cells[1:]))
    if any(number(name) is not None for name in names):
        return None
    step, epoch, time = (first_of(names, wanted) for wanted in (STEPS, EPOCHS, TIMES))
    if step is None and epoch is None and (axis is not None or _counts(names[0].lower())):
        step, clock = axis or (0, None)  # a script's own word for its axis is first
        time = clock if time is None else time
    if step is None and epoch is None:
        return None
    axes = {step, epoch, time}
    metrics = tuple(i for i, name in enumerate(names) if i not in axes and name and not INDEX.fullmatch(name))
    return _Header(names, step, epoch, time, metrics)


def _sniff(opened: Opened) -> tuple[str, _Header]:
    delimiter, rows = first_rows(opened, _SAMPLE_ROWS + 1)
    while len(rows) > 1 and _is_comment(rows[0]) and _header(rows[0]) is None:
        rows = rows[1:]
    header = (_header(rows[0], _axis(rows[1:])) or _uncounted(rows)) if rows else None
    if header is None:
        raise NotMine("the first line names no step and no epoch")
    if is_chart(rows[0]) or is_history(rows[0]):
        raise NotMine("an export of W&B")
    header = _within_epochs(_split(_ranked(_long(header, rows[1:]), rows[1:]), rows[1:]), rows[1:])
    header = _titled(_without_end(header, rows[1:]), opened.source.path)
    if header.by_row:
        return delimiter, header
    axis = header.epoch if header.step is None else header.step
    if axis is not None and any(len(row) > axis and number(row[axis].strip()) is not None for row in rows[1:]):
        return delimiter, _with_date(replace(header, units=_units(header, rows[1:])), rows[1])
    raise NotMine("no row has a number as its step")


def _uncounted(rows: Sequence[Sequence[str]]) -> _Header | None:
    """The header of a table that names a loss and counts nothing: numbers alone, one row for each step."""
    names = tuple(cell.strip() for cell in rows[0])
    cells = [number(cell.strip()) for row in rows[1:] for cell in row]
    if len(rows) <= ENUMERATED or None in cells or any(number(name) is not None for name in names):
        return None
    if len({len(row) for row in rows}) > 1 or not any(canonical(name).canonical == "loss" for name in names):
        return None
    return _Header(names, None, None, None, tuple(range(len(names))), by_row=True)


def _long(header: _Header, rows: Sequence[Sequence[str]]) -> _Header:
    """The header with the column of names, where one row holds one number and says which."""
    named, value = (first_of(header.names, keys_of(means)) for means in ("name_of_a_value", "value_of_a_name"))
    if named is None or value is None or {named, value} & {header.step, header.epoch}:
        return header
    told = [row[named].strip() for row in rows if len(row) > named]
    is_text = bool(told) and all(cell and number(cell) is None for cell in told)
    return replace(header, metrics=(value,), name=named) if is_text else header


def _within_epochs(header: _Header, rows: Sequence[Sequence[str]]) -> _Header:
    """The header with the counter of batches as its step, where several rows are of one epoch."""
    if header.step is not None or header.epoch is None:
        return header
    of_rows = [row for row in rows if len(row) == len(header.names)]
    epochs = [row[header.epoch].strip() for row in of_rows]
    counters = (i for i in header.metrics if stands_for("counter_of_steps", header.names[i].lower()))
    step = next((i for i in counters if all(row[i].strip().isdigit() for row in of_rows)), None)
    if step is None or len({*epochs}) == len(epochs):
        return header
    return replace(header, step=step, metrics=tuple(i for i in header.metrics if i != step), in_epochs=True)


def _titled(header: _Header, path: str) -> _Header:
    """The header with the name of its one metric, which is called a value, from a path such as `val/loss.csv`.

    A file of TensorBoard's is called `run-NAME-tag-METRIC.csv`, where the name of the run may end in a split.
    """
    values = [i for i in header.metrics if header.names[i].lower() in keys_of("value_of_a_name")]
    if header.name is not None or len(values) != 1:
        return header
    folder, _, base = path.rpartition("/")
    run_name, tag, stem = base.rpartition(".")[0].rpartition("-tag-")
    above = _PARTS.split(run_name)[-1] if tag else folder.rpartition("/")[2]
    is_split = stands_for("names_a_split_only", above) or stands_for("held_out_word", above)
    title = f"{above}/{stem}" if is_split else stem
    is_known = any(stands_for(means, title) for means in ("printed_metric", "of_loss", "evaluation_metric", "judged"))
    return replace(header, metrics=tuple(values), title=title) if is_known else header


def _without_end(header: _Header, rows: Sequence[Sequence[str]]) -> _Header:
    """The header without steps that begin anew in each epoch, whose end is -1: its rows count."""
    if header.step is None or header.epoch is None:
        return header
    steps = [number(row[header.step].strip()) for row in rows if len(row) > header.step]
    return replace(header, step=None, by_row=True) if -1 in steps else header


def _ranked(header: _Header, rows: Sequence[Sequence[str]]) -> _Header:
    """The header with the column of ranks: whole numbers that begin with 0, as the rank of a matrix does not."""
    named = first_of(header.names, RANKS)
    cells = {row[named].strip() for row in rows if len(row) > named} if named is not None else {""}
    if "0" not in cells or not all(cell.isdigit() for cell in cells):
        return header
    return replace(header, metrics=tuple(i for i in header.metrics if i != named), rank=named)


def _split(header: _Header, rows: Sequence[Sequence[str]]) -> _Header:
    """The header with the column of splits: words for training or held-out data in each row."""
    index = first_of(header.names, SPLITS)
    words = {row[index].strip() for row in rows if len(row) > index} if index is not None else set[str]()
    if not words or any(split_named(word) is None for word in words):
        return header
    return replace(header, metrics=tuple(i for i in header.metrics if i != index), split=index)


def _with_date(header: _Header, first: Sequence[str]) -> _Header:
    """The header with its column of dates, which its first row shows."""
    is_counted = header.time is not None and header.time < len(first) and number(first[header.time].strip()) is not None
    named = (i for i, name in enumerate(header.names) if name.lower() in (*DATES, *TIMES) and i < len(first))
    date = next((i for i in named if dated(first[i].strip()) is not None), None) if not is_counted else None
    return replace(header, date=date, metrics=tuple(i for i in header.metrics if i != date))


def _units(header: _Header, rows: Sequence[Sequence[str]]) -> dict[int, str]:
    """Columns of metrics whose first cell is a number with a unit."""
    firsts = ((i, next((row[i] for row in rows if len(row) > i and row[i].strip()), "")) for i in header.metrics)
    return {i: unit for i, cell in firsts if (unit := unit_of(cell))}


def _cell(cells: Sequence[str], index: int) -> str:
    """One cell, empty where the row ends before it."""
    return "".join(cells[index : index + 1]).strip()


def _row(row: Row, state: _State) -> None:
    header = state.header
    numbers = [number(header.bare(i, cell)) for i, cell in enumerate(row.cells)]
    numbers += [None] * (len(header.names) - len(numbers))
    step, epoch, time = (None if i is None else numbers[i] for i in (header.step, header.epoch, header.time))
    axis = state.seq + 1 if header.by_row else int64(epoch if header.step is None else step)
    own_epoch = None if header.step is None else epoch
    t_ns = unix_ns(time) if header.date is None else dated(_cell(row.cells, header.date))
    own = None if header.rank is None else int64(numbers[header.rank])
    rank = state.rank if own is None else own
    gstep = state.batches.place(axis, epoch) if header.in_epochs else None
    shared = At(state.seq, 0, rank, row.line, row.byte, axis, epoch, t_ns, gstep)
    see = state.attempts.see
    for index in header.metrics:
        name = header.named(index, row.cells)
        value = numbers[index]
        if name.startswith(_CONFIG):
            _remember(state, name, row.cells[index : index + 1])
        elif value is not None and name:
            if (attempt := see(name if own is None else f"{own} {name}", axis, own_epoch)) != shared.attempt:
                shared = shared._replace(attempt=attempt)
            state.rows.add(shared, name, value)


def _table(columns: Columns, state: _State) -> None:
    """Read many rows at once, as `_row` reads them one by one."""
    import numpy as np  # noqa: PLC0415 - few runs have a table that is worth it

    header, height = state.header, len(columns.line)
    step, epoch, time = (None if i is None else columns.numbers(i) for i in (header.step, header.epoch, header.time))
    counts = step if header.step is not None else epoch
    assert counts is not None or header.by_row  # a header names one of them
    if counts is not None:
        axis = columns.whole(header.step if header.step is not None else header.epoch or 0, counts)
    else:
        axis = as_column(np.arange(state.seq + 1, state.seq + height + 1))
    configured = [i for i in header.metrics if header.names[i].startswith(_CONFIG)]
    metrics = [i for i in header.metrics if i not in configured]
    names, numbers = [header.called(i) for i in metrics], [columns.numbers(i, header.units.get(i, "")) for i in metrics]
    there = np.column_stack([np.zeros((height, 0), np.bool_), *(one.is_not_null().to_numpy() for one in numbers)])
    values = np.column_stack([np.zeros((height, 0)), *(one.to_numpy() for one in numbers)])
    if header.split is not None:
        names, there, values = _of_splits(columns.text(header.split), names, there, values)
    attempts = _attempts(state, names, axis, None if header.step is None else epoch, there)
    seq = as_column(np.arange(state.seq, state.seq + height))
    times = None if time is None else unix_ns_of(time)
    times = times if header.date is None else columns.dates(header.date)
    gsteps = _gsteps(axis, epoch, state) if header.in_epochs and epoch is not None else None
    places = Places(seq, state.rank, columns.line, columns.byte, axis, epoch, times, gsteps)
    state.rows.add_table(places, names, values, there, attempts)
    filled = [(first, header.names[i]) for i in configured if (first := columns.first_text(i)) is not None]
    for (_, text), name in sorted(filled, key=lambda one: one[0][0]):
        _remember(state, name, [text])
    state.seq += height


def _of_splits(
    words: pl.Series, names: Sequence[str], there: npt.NDArray[np.bool_], values: npt.NDArray[np.float64]
) -> tuple[list[str], npt.NDArray[np.bool_], npt.NDArray[np.float64]]:
    """A table in which the names of each split have columns of their own."""
    import numpy as np  # noqa: PLC0415 - few runs have a table that is worth it

    meant = {word: split_named(word or "") or "" for word in words.unique(maintain_order=True)}
    held = np.array([meant[word] for word in words])
    splits = list(dict.fromkeys(meant.values()))
    own = np.hstack([there & (held == split)[:, None] for split in splits])
    return [within(split, name) for split in splits for name in names], own, np.hstack([values] * len(splits))


def _gsteps(batch: pl.Series, epoch: pl.Series, state: _State) -> pl.Series:
    """The places of batches among those of all epochs."""
    import polars as pl  # noqa: PLC0415 - few runs have a table that is worth it

    place = state.batches.place
    return pl.Series([place(*one) for one in zip(batch.to_list(), epoch.to_list(), strict=True)], dtype=pl.Int64)


def _attempts(
    state: _State, names: Sequence[str], axis: pl.Series, epoch: pl.Series | None, there: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Attempt of each point of a table of records by names; those of a record without a step are of the current one."""
    import numpy as np  # noqa: PLC0415 - few runs have a table that is worth it

    counted = there & axis.is_not_null().to_numpy()[:, None]
    record, codes = np.nonzero(counted)
    epochs = None if epoch is None else epoch.fill_null(-1.0).to_numpy()[record]
    current = state.attempts.current
    seen = state.attempts.see_many(names, codes, (axis.fill_null(0).to_numpy()[record], epochs))
    attempts = np.zeros(there.shape, np.int64)
    attempts[counted] = np.diff(seen, prepend=current)
    return attempts.cumsum().reshape(there.shape) + current


def _remember(state: _State, name: str, cells: list[str]) -> None:
    key = name.removeprefix(_CONFIG).replace("/", ".")
    if key not in state.config and len(state.config) < _FACTS and cells and cells[0].strip():
        value = number(cells[0].strip())
        state.config[key] = cells[0].strip() if value is None else value


def _variant(header: _Header, path: str) -> str:
    base = path.rpartition("/")[2].lower()
    if base.startswith("progress."):
        return "progress of reinforcement learning"
    if header.step is None:
        return "results.csv of YOLO" if any(name.endswith("box_loss") for name in header.names) else "csv by epoch"
    return "csv by step"
