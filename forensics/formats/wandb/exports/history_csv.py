"""The history of a W&B run as CSV: `run.history().to_csv()` or the rows of `scan_history`, known by the column `_step`.

A cell is empty where the row did not log the metric; `NaN` as a word is a NaN. `run.history()` holds 500 sampled rows
unless asked for more, and a file with exactly that many says so.
"""

from __future__ import annotations

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.delimited import first_rows, refused, rows_of
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import MetricRows
from forensics.formats.rows.text import settle
from forensics.formats.wandb.exports._rows import HistoryRows
from forensics.formats.wandb.exports.columns import is_chart, is_history

_SAMPLE_ROWS = 20


@ingester("wandb_history_csv", version=1, sniff=Sniff(glob=("*.csv", "*.tsv")), emits=("metrics", "facts"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one history; raises `NotMine` when no column is `_step`, or no row below has a number in it."""
    delimiter, head = first_rows(opened, _SAMPLE_ROWS + 1)
    header = [cell.strip() for cell in head[0]] if head else []
    if not is_history(header) or is_chart(header):
        raise NotMine("no column is called _step")
    axis = header.index("_step")
    if not any(len(row) > axis and number(row[axis].strip()) is not None for row in head[1:]):
        raise NotMine("no row has a number as its _step")
    source = opened.source
    history = HistoryRows(out, MetricRows(out, limits), source.rank, source.attempt or 0)
    rows = rows_of(opened, delimiter, out)
    next(rows, None)
    lost = 0
    for row in rows:
        if wrong := refused(row, len(header), out):
            lost += wrong
            continue
        cells = ((name, number(cell.strip())) for name, cell in zip(header, row.cells, strict=False))
        history.add(((name, value) for name, value in cells if value is not None), row.line, row.byte)
    history.close()
    out.format("W&B history csv")
    settle(opened, out, records=history.count, lost_bytes=lost, reason="rows that do not fit the header")
