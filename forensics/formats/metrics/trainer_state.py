"""Hugging Face `trainer_state.json`: the logged history of a run, its progress, and the folder of its checkpoint.

The trainer writes it at every save, so it ends with the last checkpoint, not with the crash. By default its log filter
replaces a non-finite loss by zero: a loss of exactly 0 beside a NaN gradient norm is marked as filtered by the writer.
A record without a step, as callbacks of one's own append it, has the step of the record before it as `gstep`. Every
checkpoint repeats the history before it: each file is read whole, and `case.joined` tells the copies apart. A file that
was cut is read record by record as far as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import Places, number, places, records_before_damage
from forensics.formats.rows.metrics import At, MetricRows, int64
from forensics.formats.rows.out import write_row
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import loads
from forensics.knowledge.paths import named

_PROGRESS = ("global_step", "max_steps", "epoch", "num_train_epochs", "best_metric", "best_global_step", "total_flos")
_CONFIG = ("logging_steps", "save_steps", "eval_steps", "train_batch_size", "num_input_tokens_seen")
_TEXT = ("best_model_checkpoint",)
_LIST = "log_history"
#: The name that the trainer gives the file. Under another one the list is looked for in so many bytes: the keys before
#: it, in the order of the alphabet, are few.
_NAME, _HEAD_BYTES = "trainer_state", 4096


@ingester("trainer_state", version=3, sniff=Sniff(glob=("*.json",)), emits=("metrics", "facts", "checkpoints"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one state file, under any name; raises `NotMine` when there is no `log_history` in it, near its begin."""
    if _NAME not in opened.source.path and b'"log_history"' not in opened.text_head(_HEAD_BYTES):
        raise NotMine("no log_history")
    data = document(opened, limits)
    if b'"log_history"' not in data:
        raise NotMine("no log_history")
    where = places(data, _LIST)
    lost, state, history = _content(data, where, out)
    _metrics(opened, history, where, MetricRows(out, limits))
    _facts(state, out)
    inside = _checkpoint(opened.source.path, out, broken=not state)
    out.format("trainer_state in a checkpoint" if inside else "trainer_state")
    settle_document(opened, out, records=len(history), lost_bytes=lost)


def _content(data: bytes, where: Places, out: Out) -> tuple[int, Mapping[str, object], list[object]]:
    """Bytes that were lost, the state, and its history."""
    try:
        state = loads(data)
    except InputError as error:
        history, good = records_before_damage(data, where)
        out.issue("damaged", f"{error.message}; {len(history)} records before it were read", byte=good)
        return len(data) - good, {}, history
    if not isinstance(state, dict):
        raise NotMine("not an object")
    whole = cast("dict[str, object]", state)
    history = whole.get(_LIST)
    if not isinstance(history, list):
        raise NotMine("log_history is no list")
    return 0, whole, cast("list[object]", history)


def _metrics(opened: Opened, history: Sequence[object], where: Places, rows: MetricRows) -> None:
    attempts = Attempts(opened.source.attempt or 0)
    last: int | None = None
    for seq, item in enumerate(history):
        if not isinstance(item, dict):
            continue
        record = cast("dict[str, object]", item)
        step, epoch = int64(number(record.get("step"))), number(record.get("epoch"))
        last = last if step is None else step
        filtered = _is_filtered(record)
        keys = where.keys(seq)
        begin = where.spans[seq][0] if seq < len(where.spans) else None
        for key, cell in record.items():
            if key in ("step", "epoch") or (cell is not None and number(cell) is None):
                continue
            byte = keys.get(key, begin)
            at = At(
                seq,
                attempt=attempts.see(key, step),
                rank=opened.source.rank,
                line=None if byte is None else where.line(byte),
                byte=byte,
                step=step,
                epoch=epoch,
                gstep=last if step is None else None,
            )
            rows.add(at, key, number(cell), value_class="filtered-by-writer" if filtered and key == "loss" else None)
    rows.close()


def _is_filtered(record: Mapping[str, object]) -> bool:
    loss, norm = number(record.get("loss")), number(record.get("grad_norm"))
    return loss == 0 and norm is not None and math.isnan(norm)


def _facts(state: Mapping[str, object], out: Out) -> None:
    families = ((_PROGRESS, "progress"), (_CONFIG, "config"), (_TEXT, "progress"))
    told = ((key, state.get(key), family) for keys, family in families for key in keys)
    write_facts(out, (row for row in told if isinstance(row[1], (int, float, str))))


def _checkpoint(path: str, out: Out, *, broken: bool) -> bool:
    """State the checkpoint folder that contains the file, if one does."""
    found = named(path)
    if found is None or not found.has_place or found.path == path:
        return False
    complete = False if broken or found.temporary else None
    row = {"seq": 0, "step": found.step, "path": found.path, "kind": "directory", "complete": complete}
    write_row(out, "checkpoints", row)
    return True
