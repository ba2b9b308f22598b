"""Tables of metrics as comma-separated text: Lightning's `metrics.csv`, YOLO's `results.csv`, any with a step or epoch.

An empty cell was not logged; `nan` is a NaN. A header that comes again begins a new table. Where the table counts in
epochs only, the epoch is the step, because it is the file's own axis.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass

from forensics.errors import NotMine
from forensics.ingest._attempts import Attempts
from forensics.ingest._axes import EPOCHS, STEPS, TIMES, first_of
from forensics.ingest._json_records import number
from forensics.ingest._metric_rows import At, MetricRows, int64, unix_ns
from forensics.ingest._out import Out
from forensics.ingest._rows_of_text import Line, lines_of, settle
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.registry import Sniff, ingester

_COLUMNS = 10_000
_SAMPLE_ROWS = 20


@dataclass(frozen=True, slots=True)
class _Header:
    names: tuple[str, ...]
    step: int | None
    epoch: int | None
    time: int | None

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(i for i in (self.step, self.epoch, self.time) if i is not None)


@ingester(
    "metrics_csv",
    version=1,
    sniff=Sniff(glob=("*.csv",)),
    emits=("metrics",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one table.

    Raises:
        NotMine: when the first line names no step or epoch, or no row below it has a number.
    """
    del limits
    header = _sniff(opened)
    rows = MetricRows(out)
    attempts = Attempts(opened.source.attempt or 0)
    seq = lost = 0
    for line in lines_of(opened):
        if not line.text.strip():
            continue
        cells = _cells(line.text)
        again = _header(cells) if cells and cells[0].strip() == header.names[0] else None
        if again is not None:
            header = again
        elif _is_cut(line, cells, header):
            out.issue("row-cut", "the last row is cut and was not read", byte=line.byte, line=line.number)
            lost += len(line.text)
        elif len(cells) > len(header.names):
            out.issue("row-not-read", "a row has more cells than the header", byte=line.byte, line=line.number)
            lost += len(line.text)
        else:
            _row(cells, header, (seq, line), opened.source.rank, attempts, rows)
            seq += 1
    rows.close()
    out.format(_variant(header))
    settle(opened, out, records=seq, lost_bytes=lost, reason="rows that do not fit the header")


def _cells(text: bytes) -> list[str]:
    plain = text.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")
    if '"' not in plain:
        return plain.split(",", _COLUMNS)
    try:
        return next(iter(csv.reader([plain])), list[str]())
    except csv.Error:
        return []


def _header(cells: list[str]) -> _Header | None:
    """The meaning of a first line; None when it names no axis, or numbers stand in it."""
    names = tuple(cell.strip() for cell in cells)
    if len(names) < 2 or len(names) > _COLUMNS or any(number(name) is not None for name in names):
        return None
    step, epoch = first_of(names, STEPS), first_of(names, EPOCHS)
    return _Header(names, step, epoch, first_of(names, TIMES)) if step is not None or epoch is not None else None


def _sniff(opened: Opened) -> _Header:
    first, _, rest = opened.text_head(65_536).partition(b"\n")
    header = _header(_cells(first.removesuffix(b"\r")))
    if header is None:
        raise NotMine("the first line names no step and no epoch")
    for text in rest.split(b"\n")[:_SAMPLE_ROWS]:
        cells = _cells(text)
        axis = header.epoch if header.step is None else header.step
        if axis is not None and axis < len(cells) and number(cells[axis].strip()) is not None:
            return header
    raise NotMine("no row has a number as its step")


def _is_cut(line: Line, cells: list[str], header: _Header) -> bool:
    return not line.ended and len(cells) < len(header.names)


def _row(  # noqa: PLR0913, PLR0917 - one row and all that it is read with
    cells: list[str], header: _Header, place: tuple[int, Line], rank: int | None, attempts: Attempts, rows: MetricRows
) -> None:
    numbers = [number(cell.strip()) for cell in cells]
    numbers += [None] * (len(header.names) - len(numbers))
    step, epoch, time = (None if i is None else numbers[i] for i in (header.step, header.epoch, header.time))
    axis = int64(epoch if header.step is None else step)
    seq, line = place
    for index, (name, value) in enumerate(zip(header.names, numbers, strict=True)):
        if value is None or index in header.axes or not name:
            continue
        attempt = attempts.see(name, axis, None if header.step is None else epoch)
        at = At(
            seq,
            attempt=attempt,
            rank=rank,
            line=line.number,
            byte=line.byte,
            step=axis,
            epoch=epoch,
            t_ns=unix_ns(time),
        )
        rows.add(at, name, value)


def _variant(header: _Header) -> str:
    if header.step is None:
        return "results.csv of YOLO" if any(name.endswith("box_loss") for name in header.names) else "csv by epoch"
    return "csv by step"
