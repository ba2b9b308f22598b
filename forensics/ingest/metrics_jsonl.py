"""JSON lines of metrics, one object per record with a step: LLaMA-Factory, mmengine, detectron2, OLMo-like, custom.

NaN may stand as a bare literal or as a string. Nested objects are joined with `/`. Where a writer counts iterations
anew in each epoch, the fall of the step with a rising epoch is no restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from forensics.errors import InputError, NotMine
from forensics.ingest._attempts import Attempts
from forensics.ingest._axes import CONSTANTS, EPOCHS, STEPS, TIMES
from forensics.ingest._json_records import number
from forensics.ingest._metric_rows import At, MetricRows, int64, unix_ns
from forensics.ingest._out import Out
from forensics.ingest._rows_of_text import Line, lines_of, settle
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.tolerant_json import loads
from forensics.registry import Sniff, ingester

_AXES = frozenset((*STEPS, *EPOCHS, *TIMES, *CONSTANTS))
_NESTING = 3
_SAMPLE_ROWS = 50
_MAX_STEPS = ("total_steps", "max_steps")


@dataclass(frozen=True, slots=True)
class _Row:
    step: int | None
    epoch: float | None
    t_ns: int | None
    rank: int | None
    cells: tuple[tuple[str, float | None], ...]


@ingester(
    "metrics_jsonl",
    version=1,
    sniff=Sniff(glob=("*.jsonl", "scalars.json", "*.log.json", "metrics.json", "result.json", "*_metrics.json")),
    emits=("metrics", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of JSON lines.

    Raises:
        NotMine: when none of the first lines is an object with a step and a number beside it.
    """
    del limits
    _sniff(opened)
    rows = MetricRows(out)
    attempts = Attempts(opened.source.attempt or 0)
    seq = lost = 0
    most: float | None = None
    for line in lines_of(opened):
        record = _record(line.text)
        if record is None:
            if line.text.strip():
                _complain(line, out)
                lost += len(line.text)
            continue
        _row(_parsed(record), seq, line, opened.source.rank, attempts, rows)
        most = next((found for key in _MAX_STEPS if (found := number(record.get(key))) is not None), most)
        seq += 1
    rows.close()
    if (whole := int64(most)) is not None:
        out.rows("facts", {"key": ["max_steps"], "value": [str(whole)], "family": ["progress"]})
    out.format("json lines")
    settle(opened, out, records=seq, lost_bytes=lost, reason="lines that are no JSON object")


def _complain(line: Line, out: Out) -> None:
    if line.ended:
        out.issue("line-not-json", "a line is no JSON object", byte=line.byte, line=line.number)
    else:
        out.issue("row-cut", "the last line is cut and was not read", byte=line.byte, line=line.number)


def _record(text: bytes) -> dict[str, object] | None:
    text = text.strip().removeprefix(b"\xef\xbb\xbf")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    try:
        found = loads(text)
    except InputError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _sniff(opened: Opened) -> None:
    for text in opened.text_head(1 << 20).split(b"\n")[:_SAMPLE_ROWS]:
        record = _record(text)
        if record is not None:
            row = _parsed(record)
            if row.step is not None and row.cells:
                return
    raise NotMine("no JSON line has a step and a number")


def _flat(record: dict[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, cell in record.items():
        if isinstance(cell, dict) and depth < _NESTING:
            yield from _flat(cast("dict[str, object]", cell), f"{prefix}{key}/", depth + 1)
        else:
            yield f"{prefix}{key}", cell


def _parsed(record: dict[str, object]) -> _Row:
    lowered = {key.lower(): cell for key, cell in record.items()}

    def axis(names: tuple[str, ...]) -> float | None:
        return next((found for name in names if (found := number(lowered.get(name))) is not None), None)

    cells = tuple(
        (key, number(cell))
        for key, cell in _flat(record)
        if key.lower() not in _AXES and (cell is None or number(cell) is not None)
    )
    return _Row(int64(axis(STEPS)), axis(EPOCHS), unix_ns(axis(TIMES)), int64(number(lowered.get("rank"))), cells)


def _row(  # noqa: PLR0913, PLR0917 - one row and all that it is read with
    row: _Row, seq: int, line: Line, rank: int | None, attempts: Attempts, rows: MetricRows
) -> None:
    for name, value in row.cells:
        attempt = attempts.see(name, row.step, row.epoch)
        at = At(
            seq,
            attempt=attempt,
            rank=rank if row.rank is None else row.rank,
            line=line.number,
            byte=line.byte,
            step=row.step,
            epoch=row.epoch,
            t_ns=row.t_ns,
        )
        rows.add(at, name, value)
