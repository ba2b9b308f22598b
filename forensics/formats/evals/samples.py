"""Samples of lm-evaluation-harness: one line per document with its answers and scores.

Only what pairs two evaluations is kept: the document's number, the hashes of document and prompt, the filter, and each
metric that is a number. Documents, prompts and answers are not kept. The task is in the name of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from msgspec import Struct, field

from forensics.formats.evals.checkpoint_names import stamp_ns
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.json_records import JsonLines, number
from forensics.formats.rows.text import Line, settle
from forensics.knowledge.vocabulary import keys_of

_NAME = lazily(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d\-.]+)?\.jsonl(?:\.gz|\.zst)?$")
_BATCH = 50_000
_MOST_ROWS = 5_000_000
_NOT_METRICS = frozenset(keys_of("not_a_metric_of_sample"))
_NEEDED = ("doc_id", "resps")


class _Row(NamedTuple):
    seq: int
    line: int
    byte: int
    task: str
    filter: str | None
    doc: str
    doc_hash: str | None
    prompt_hash: str | None
    metric: str
    value: float
    t_ns: int | None


class _State(Struct):
    out: Out
    batch_rows: int
    task: str
    t_ns: int | None
    batch: list[_Row] = field(default_factory=list[_Row])
    written: int = 0
    records: int = 0
    left_out: int = 0
    no_number: int = 0

    def flush(self) -> None:
        if self.batch:
            self.out.rows("eval_samples", dict(zip(_Row._fields, zip(*self.batch, strict=True), strict=True)))
            self.batch.clear()


@ingester("eval_samples", version=1, sniff=Sniff(glob=("*samples_*.jsonl",)), emits=("eval_samples",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of samples, line by line.

    Raises `NotMine` when none of the first lines is a sample of an evaluation.
    """
    named = _NAME.search(opened.source.path.rpartition("/")[2])
    if named is None or not _looks_like_samples(opened):
        raise NotMine("no samples of an evaluation")
    state = _State(out, min(_BATCH, limits.batch_rows), named["task"], stamp_ns(opened.source.path))
    lines = JsonLines(opened, out, "sample", "doc_id")
    for line, record in lines:
        _add(record, line, state)
    state.flush()
    if state.left_out:
        out.issue("too-many-samples", f"only {_MOST_ROWS} scores of a file are kept", count=state.left_out)
    if state.no_number:
        out.issue("score-no-number", f"{state.no_number} scores are lists, not numbers, and cannot be paired")
    out.format("lm-eval samples")
    settle(opened, out, records=state.records, lost_bytes=lines.lost_bytes, reason="lines that are no sample")


def _looks_like_samples(opened: Opened) -> bool:
    head = opened.text_head(1 << 20)
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    return all(b'"' + key.encode() + b'"' in first for key in _NEEDED)


def _add(record: Mapping[str, object], line: Line, state: _State) -> None:
    seq, state.records = state.records, state.records + 1
    told = record.get("metrics")
    names = cast("Sequence[object]", told) if isinstance(told, list) else [k for k in record if k not in _NOT_METRICS]
    for name in names:
        if not isinstance(name, str) or name not in record:
            continue
        cell = record[name]
        value = float(cell) if isinstance(cell, bool) else number(cell)
        if value is None:
            state.no_number += 1
            continue
        if state.written >= _MOST_ROWS:
            state.left_out += 1
            continue
        state.written += 1
        state.batch.append(_row(record, line, state, (seq, name, value)))
        if len(state.batch) >= state.batch_rows:
            state.flush()


def _row(record: Mapping[str, object], line: Line, state: _State, what: tuple[int, str, float]) -> _Row:
    seq, name, value = what
    return _Row(
        seq=seq,
        line=line.number,
        byte=line.byte,
        task=state.task,
        filter=_text(record.get("filter")),
        doc=str(record["doc_id"])[:64],
        doc_hash=_text(record.get("doc_hash")),
        prompt_hash=_text(record.get("prompt_hash")),
        metric=name,
        value=value,
        t_ns=state.t_ns,
    )


def _text(cell: object) -> str | None:
    return cell[:64] if isinstance(cell, str) else None
