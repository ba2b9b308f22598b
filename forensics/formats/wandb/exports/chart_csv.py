"""A chart of the W&B web page, exported as CSV: points of one or several runs, as `<run> - <metric>`.

A chart is drawn from samples or bins, never from every row, and the file is stated to be that. The bounds of a bin
(`__MIN`, `__MAX`) are kept where they differ from the point. An empty cell was not drawn; a column without a value is
stated. Where a chart shows several runs the printed name keeps the run, so that each is a series of its own.
"""

from __future__ import annotations

from msgspec import Struct, field

from forensics.dialects.names import canonical
from forensics.dialects.spec import Name
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.delimited import Row, first_rows, refused, rows_of
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import At, MetricRows, int64, unix_ns
from forensics.formats.rows.text import settle
from forensics.formats.wandb.exports._rows import SAMPLED
from forensics.formats.wandb.exports.columns import Chart, Column, chart_of

_SAMPLE_ROWS = 20
_RUNS = 100
_STEP = "_step"


class _State(Struct):
    chart: Chart
    width: int
    rank: int | None
    attempt: int
    rows: MetricRows
    names: dict[int, Name]
    many: bool
    count: int = 0
    binned: int = 0
    lost_bytes: int = 0
    filled: set[int] = field(default_factory=set[int])


@ingester("wandb_chart_csv", version=2, sniff=Sniff(glob=("*.csv", "*.tsv")), emits=("metrics", "facts"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one chart; raises `NotMine` when the header is no chart's, or no row below it begins with a number."""
    delimiter, head = first_rows(opened, _SAMPLE_ROWS + 1)
    chart = chart_of(head[0]) if head else None
    if chart is None:
        raise NotMine("the header is no chart's")
    if not any(row and number(row[0].strip()) is not None for row in head[1:]):
        raise NotMine("no row begins with a number")
    source = opened.source
    names = {column.index: _name(column) for column in chart.columns}
    many = len({column.run for column in chart.columns}) > 1
    state = _State(chart, len(head[0]), source.rank, source.attempt or 0, MetricRows(out, limits), names, many)
    rows = rows_of(opened, delimiter, out)
    next(rows, None)
    for row in rows:
        if wrong := refused(row, state.width, out):
            state.lost_bytes += wrong
            continue
        _row(row, state)
        state.count += 1
    state.rows.close()
    _state_sampling(state, out)
    out.format("W&B chart csv")
    settle(opened, out, records=state.count, lost_bytes=state.lost_bytes, reason="rows that do not fit the header")


def _name(column: Column) -> Name:
    return Name(f"{column.metric}{column.bound}") if column.bound else canonical(column.metric)


def _row(row: Row, state: _State) -> None:
    chart = state.chart
    numbers = [number(cell.strip()) for cell in row.cells]
    numbers += [None] * (state.width - len(numbers))
    x = numbers[0]
    points = {(c.run, c.metric): numbers[c.index] for c in chart.columns if not c.bound}
    binned = False
    for column in chart.columns:
        value = numbers[column.index]
        if value is None:
            continue
        state.filled.add(column.index)
        if column.metric == _STEP or (column.bound and _same(points.get((column.run, column.metric)), value)):
            continue
        binned = binned or bool(column.bound)
        at = At(
            state.count,
            attempt=state.attempt,
            rank=state.rank,
            line=row.line,
            byte=row.byte,
            step=int64(points.get((column.run, _STEP)) if chart.by_time else x),
            epoch=x if chart.axis.lower() == "epoch" else None,
            t_ns=unix_ns(x) if chart.by_time else None,
        )
        printed = column.header if state.many else f"{column.metric}{column.bound}"
        state.rows.add(at, printed, value, means=state.names[column.index])
    state.binned += binned


def _same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (one != one and other != other))  # noqa: PLR0124 - so NaN is NaN


def _state_sampling(state: _State, out: Out) -> None:
    runs = list(dict.fromkeys(column.run for column in state.chart.columns))
    how = f"{state.binned} of {state.count} points are bins of several" if state.binned else "no point is a bin"
    out.issue(SAMPLED, f"a chart of W&B is drawn from samples, not from every row: {how}", line=1)
    empty = [c for c in state.chart.columns if not c.bound and c.index not in state.filled]
    if empty:
        shown = ", ".join(repr(column.header[:80]) for column in empty[:3])
        out.issue("column-empty", f"columns without a single value: {shown}", line=1, count=len(empty))
    facts = {
        "export.kind": "chart",
        "export.rows": state.count,
        "export.sampled": True,
        "export.axis": state.chart.axis[:200],
        "export.runs": [run[:200] for run in runs[:_RUNS]],
    }
    write_facts(out, ((key, value, "progress") for key, value in facts.items()), line=1)
