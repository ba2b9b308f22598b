"""Tables of evaluation results, as delimited text or JSON lines: a row for each task, checkpoint or model.

A delimited table has columns for the task, the metric and its value, or a column for each metric; OpenCompass has one
for each model. JSON lines have one object of any layout per line (`eval_results.py`). The other columns are settings of
the row. Records of training, with a loss or a learning rate beside, are metrics and left to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from forensics.formats.evals._own import identifies, own_rows, row_of, trains
from forensics.formats.evals._rows import EvalRow, write_rows
from forensics.formats.evals._tree import COUNTS, METRICS, TASKS, Scored, scores_in
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.delimited import first_rows, refused, rows_of
from forensics.formats.rows.json_records import JsonLines, Offsets, number, record_of
from forensics.formats.rows.text import head_lines, settle
from forensics.knowledge.scores import is_share, metric_of
from forensics.knowledge.vocabulary import keys_of

_SAMPLE_ROWS = 20
_HEAD = 1 << 16
#: Characters of a column's name that are kept; each row states the settings beside its score by their names.
_NAME_CHARS = 256
_VALUES = keys_of("value_of_line")
_NO_MODELS = frozenset((*TASKS, *METRICS, *COUNTS, *keys_of("beside_a_result")))
_ERRORS = keys_of("error_of_a_score")
_TRUTH: Mapping[str, object] = {"true": True, "false": False, "": None, "none": None, "null": None}


@ingester("eval_tables", version=3, sniff=Sniff(glob=("*.csv", "*.tsv", "*.jsonl")), emits=("evals",), growth=8)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one table of results; raises `NotMine` when no first row is the result of an evaluation."""
    del limits
    name = opened.source.path.lower()
    rows: list[EvalRow] = []
    lost_bytes = _lines(opened, out, rows) if ".jsonl" in name else _table(opened, out, rows)
    out.format("evaluation results (table)")
    settle(opened, out, records=write_rows(out, rows), lost_bytes=lost_bytes, reason="rows that are no result")


def _lines(opened: Opened, out: Out, rows: list[EvalRow]) -> int:
    first = [record for text in head_lines(opened, _HEAD)[:_SAMPLE_ROWS] if (record := record_of(text)) is not None]
    scores = [scores_in(record) for record in first]
    if (
        not first
        or not all(scores)
        or any(trains(own) for own in scores)
        or not any(identifies(own, opened.source.path) for own in scores)
    ):
        raise NotMine("no lines of evaluation results")
    seq = 0
    lines = JsonLines(opened, out)
    for line, record in lines:
        for row in own_rows(scores_in(record), opened.source.path, Offsets(), strict=False):
            rows.append(row._replace(seq=seq, line=line.number, byte=line.byte))
            seq += 1
    return lines.lost_bytes


def _table(opened: Opened, out: Out, rows: list[EvalRow]) -> int:
    delimiter, first = first_rows(opened, _SAMPLE_ROWS)
    if len(first) < 2:
        raise NotMine("no table")
    names = [cell.strip().strip('"')[:_NAME_CHARS] for cell in first[0]]
    if not any(name.lower() in METRICS or metric_of(name) is not None for name in names):
        raise NotMine("no column of a score")  # most tables are of training, and their cells need no look
    columns = _Columns.of(names)
    scores = (one for cells in first[1:] for one in _scores(columns, cells))
    head = list(islice(scores, 1))  # of most tables, which are of training, it says enough
    if not head or trains(head) or not identifies([*head, *scores], opened.source.path):
        raise NotMine("no table of evaluation results")
    lost_bytes = seq = 0
    header = True
    for row in rows_of(opened, delimiter, out):
        if header or [cell.strip()[:_NAME_CHARS] for cell in row.cells] == names:
            header = False
            continue
        if wrong := refused(row, len(names), out):
            lost_bytes += wrong
            continue
        for made in _rows(columns, row.cells, opened.source.path, (seq, row.line, row.byte)):
            rows.append(made)
            seq += 1
    return lost_bytes


class _Columns(Struct, frozen=True):
    """The columns of a table, with what their names say; asked once, because a table may have many and short rows."""

    names: tuple[str, ...]
    tasks: tuple[str, ...]
    metric: str | None
    value: str | None
    error: str | None
    #: names of columns that are a metric, with their task and metric
    measured: Mapping[str, tuple[str | None, str]]

    @classmethod
    def of(cls, names: Sequence[str]) -> _Columns:
        """Columns by a table's first row."""
        lower = {name.lower(): name for name in names}

        def first(keys: Iterable[str]) -> str | None:
            return next((lower[key] for key in keys if key in lower), None)

        tasks = tuple(lower[key] for key in TASKS if key in lower)
        measured = {name: found for name in names if (found := metric_of(name)) is not None}
        return cls(tuple(names), tasks, first(METRICS), first(_VALUES), first(_ERRORS), measured)


def _rows(columns: _Columns, cells: list[str], path: str, at: tuple[int, int, int]) -> Iterator[EvalRow]:
    for count, one in enumerate(_scores(columns, cells)):
        yield row_of(one, path, (at[0] + count, at[1], at[2]))


def _scores(columns: _Columns, cells: list[str]) -> Iterator[Scored]:
    """Scores of one row: of the column of values, of each column that is a metric, or of each model."""
    told = {name: _cell(cell) for name, cell in zip(columns.names, cells, strict=False)}
    task = next((str(told[name]) for name in columns.tasks if told.get(name) is not None), "")
    metric = None if columns.metric is None else told.get(columns.metric)
    scores: list[tuple[str, str, str, Mapping[str, object]]]
    if isinstance(metric, str) and columns.value is not None:
        scores = [(columns.value, task, metric, {})]
    elif isinstance(metric, str):
        scores = [(name, task, metric, {"model": name}) for name in told if name.lower() not in _NO_MODELS]
    else:
        scores = [
            (name, task or found[0] or "", found[1], {})
            for name in told
            if (found := columns.measured.get(name)) is not None
        ]
    used = {name for name, *_ in scores}
    error = None if columns.error is None else number(told.get(columns.error))
    around = {name: cell for name, cell in told.items() if name not in used}
    for name, asked, own, more in scores:
        found = number(told.get(name))
        if found is not None and not isinstance(told.get(name), bool) and not (is_share(own) and found > 100):
            yield Scored((name,), asked, own, found, error, {**around, **more})


def _cell(text: str) -> object:
    plain = text.strip().strip('"')
    if plain.lower() in _TRUTH:
        return _TRUTH[plain.lower()]
    found = number(plain)
    return plain if found is None else found
