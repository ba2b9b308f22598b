"""W&B offline runs: transaction logs of wandb's own message classes, which `wandb sync` uploads when you want it.

`wandb.init` would start a service process, so it is not called: the messages are framed by `io.leveldb_log`. One run
per source, rank and attempt, whose id follows from its name: exporting again gives the same id. A row is a step; NaN
and the infinities are kept. An exit record is written only where the run left its exit code, because nothing is made
up; without one, `wandb sync` shows the run as failed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from forensics.errors import InputError
from forensics.export._wide import Record, moved_note, records_of
from forensics.export.points import Series, numbered, seconds, series_of, tagged, title, unstepped_note
from forensics.export.target import Export, File, Selection, Target
from forensics.io.records.leveldb_frame import frame
from forensics.io.tolerant_json import loads
from forensics.report.phrases import plural

_HEADER = b":W&B\xe1\xbe\x00"
_PROJECT = "forensics-export"
_ID_DIGITS = 12


def write(selection: Selection) -> Export:
    """Write one offline run per series; raises `ImportError` when wandb is not installed."""
    messages: Any = import_module("wandb.proto.wandb_internal_pb2")
    files: list[File] = []
    unstepped = late = without_exit = 0
    for series in series_of(tagged(selection.points)):
        rows, missing = numbered(series.points)
        records, moved = records_of(rows)
        unstepped, late = unstepped + missing, late + moved
        without_exit += series.source not in selection.exits
        name = hashlib.sha256(f"{selection.run}\0{title(series)}".encode("utf-8", "surrogatepass"))
        run = name.hexdigest()[:_ID_DIGITS]
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(_start(records)))
        payloads = _payloads(messages, selection, series, run, records)
        files.append(File(f"offline-run-{stamp}-{run}/run-{run}.wandb", frame(payloads, _HEADER)))
    notes = [moved_note(late)] if late else []
    if unstepped:
        notes.append(unstepped_note(unstepped))
    if without_exit:
        notes.append(f"{plural(without_exit, 'run')} without an exit code: wandb sync will show failure")
    return Export(tuple(files), tuple(notes))


def _start(records: Iterable[Record]) -> int:
    return max(0, next((r.t_ns for r in records if r.t_ns is not None), 0)) // 1_000_000_000


def _payloads(messages: Any, selection: Selection, series: Series, run: str, records: list[Record]) -> list[bytes]:  # noqa: ANN401 - wandb's generated module
    header = messages.Record()
    header.header.version_info.producer = "forensics"
    header.header.version_info.min_consumer = "0.24.0"
    start = messages.Record(num=1)
    start.run.run_id = run
    start.run.project = _PROJECT
    start.run.display_name = title(series)
    start.run.start_time.seconds = _start(records)
    for key, value in selection.config.items():
        start.run.config.update.add(key=key, value_json=_json(value))
    built = [header, start, *(_history(messages, row) for row in records), _summary(messages, records)]
    if (code := selection.exits.get(series.source)) is not None:
        last = messages.Record()
        last.exit.exit_code = code
        built.append(last)
    for number, record in enumerate(built[1:], 1):
        record.num = number
    return [record.SerializeToString(deterministic=True) for record in built]


def _history(messages: Any, row: Record) -> Any:  # noqa: ANN401 - wandb's generated module
    record = messages.Record()
    record.history.step.num = row.step
    for tag, value in row.values.items():
        record.history.item.add(nested_key=[_key(tag)], value_json=json.dumps(value))
    if row.epoch is not None:
        record.history.item.add(nested_key=["epoch"], value_json=json.dumps(row.epoch))
    record.history.item.add(nested_key=["_step"], value_json=str(row.step))
    if row.t_ns is not None:
        record.history.item.add(nested_key=["_timestamp"], value_json=json.dumps(seconds(row.t_ns)))
    return record


def _summary(messages: Any, records: list[Record]) -> Any:  # noqa: ANN401 - wandb's generated module
    record = messages.Record()
    last = {key: value for row in records for key, value in row.values.items()}
    for key, value in last.items():
        record.summary.update.add(nested_key=[_key(key)], value_json=json.dumps(value))
    return record


def _json(text: str) -> str:
    """A text that is JSON as it is, any other as a JSON string: one bad value would spoil the record for a viewer."""
    try:
        loads(text.encode("utf-8", "backslashreplace"))
    except InputError:
        return json.dumps(text)
    return text


def _key(tag: str) -> str:
    """Key of a metric; those with `_` are W&B's own, and `epoch` is written as the axis that it is."""
    return f"metric/{tag}" if tag.startswith("_") or tag == "epoch" else tag


TARGET = Target("wandb", write, ("wandb leet PLACE", "wandb sync PLACE/offline-run-*  # uploads"), folder=True)
