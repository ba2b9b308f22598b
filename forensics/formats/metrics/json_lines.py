"""JSON records of metrics, each an object with a step: LLaMA-Factory, OpenMMLab, detectron2, RLlib, W&B, custom.

They are lines, or one list, as `json.dump(trainer.state.log_history)` and custom loops write it, or one object with a
list of each metric, as `json.dump(history.history)` does, perhaps below a key: `{"history": {"loss": […]}}`, or one
of plots, as ClearML gives scalars, or of iterations, as CatBoost does. A list, an object of lists with steps or a
loss, one below such a key and an object of plots or of iterations may have any name.

A number that was gathered over samples, `{"num": 64, "mean": 0.7, "std": 0.1}`, is its mean. NaN may stand as a bare
literal or as a string. Nested objects are joined with `/`; a nested `config` becomes facts. A record that names a
held-out split gets that split before its names. Where a writer counts iterations anew in each epoch, the fall of the
step with a rising epoch is no restart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, pairwise
from operator import itemgetter
from typing import cast

from msgspec import Struct, field

from forensics.dialects import wraps
from forensics.dialects.names import canonical
from forensics.dialects.reader import Bounds, Reader
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.metrics._boosting import boosted_of, may_be_boosted
from forensics.formats.metrics._plots import may_be_plots, plots_of
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.axes import CONSTANTS, DATES, EPOCHS, RANKS, STEPS, TIMES
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import JsonLines, JsonList, dated, flat, number, offsets_of, places, record_of
from forensics.formats.rows.metrics import At, MetricRows, int64, unix_ns
from forensics.formats.rows.splits import Splits, within
from forensics.formats.rows.text import Line, document, settle, settle_document
from forensics.io.budget import Budget
from forensics.knowledge.vocabulary import keys_of, stands_for
from forensics.patterns import lazily
from forensics.values import replace

_HOLDERS = frozenset(keys_of("holder_of_metrics"))
_NAMES, _VALUES = keys_of("name_of_a_value"), keys_of("value_of_a_name")
_AXES = frozenset((*STEPS, *EPOCHS, *TIMES))
_NESTING = 6
_SAMPLE_ROWS = 50
_HEAD_BYTES, _TAIL_BYTES = 1 << 20, 16 << 10
#: Characters of a line of text that names of metrics are learned from.
_LONGEST = 2000
_MAX_STEPS = ("total_steps", "max_steps")
_CONFIG = "config"
#: Of a trial of Ray Tune, true in its last record alone.
_DONE = "done"
#: A file that tells of the end of a run is no larger.
_FEW_BYTES = 64 << 10
_FACTS = 1_000
_GLOBS = (
    *("*.jsonl", "scalars.json", "*.log.json", "metrics.json", "result.json", "*_metrics.json"),
    *("*history.json", "*log.json", "*losses.json"),
)


class _Row(Struct, frozen=True):
    step: int | None
    epoch: float | None
    t_ns: int | None
    rank: int | None
    cells: tuple[tuple[str, float | None], ...]


class _State(Struct):
    rank: int | None
    budget: Budget
    rows: MetricRows
    attempts: Attempts
    splits: Splits = field(default_factory=Splits)
    by_epoch: bool = False
    seq: int = 0
    most: float | None = None
    config: Mapping[str, object] = field(default_factory=dict[str, object])
    first: dict[str, object] = field(default_factory=dict[str, object])
    last: tuple[Line, dict[str, object]] | None = None


@ingester(
    "metrics_jsonl",
    version=16,
    sniff=Sniff(glob=(*_GLOBS, "*.json", "log.txt")),
    emits=("metrics", "facts", "events"),
    growth=8,
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of JSON lines, of a list, or of an object of lists.

    Raises `NotMine` when none of the first records is an object with a step or an epoch and a number beside it, for
    lines under a name that is none of metrics, and where a logger's messages stand between the records, as errors do.
    """
    head = opened.text_head(_HEAD_BYTES)
    named = any(fnmatchcase(opened.source.path.rpartition("/")[2], glob) for glob in _GLOBS)
    columns = columns_of(document(opened, limits)) if may_be_columns(head) else None
    columns = plots_of(document(opened, limits)) if columns is None and may_be_plots(head) else columns
    columns = boosted_of(document(opened, limits)) if columns is None and may_be_boosted(head) else columns
    if columns is None and (rows := _rows_of(head, opened, limits)) is not None:
        state = _read(rows, opened, MetricRows(out, limits), by_epoch=_sniff((row for _, row in rows), opened.budget))
        _own_words(document(opened, limits), out, limits)
        out.format("json list")
        settle_document(opened, out, records=state.seq)
        return
    if columns is not None and (named or columns.is_of_metrics):
        state = _read(columns, opened, MetricRows(out, limits))
        _own_words(document(opened, limits), out, limits)
        out.format("json columns")
        settle_document(opened, out, records=state.seq)
        return
    if _is_outcome(opened, head):
        _own_words(document(opened, limits), out, limits)
        out.format("outcome of a run")
        settle_document(opened, out, records=1)
        return
    listed = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["
    if not listed and not named and not _is_of_long_records(head, opened.tail(_TAIL_BYTES)):
        raise NotMine("objects under a name that is none of metrics")
    if not listed and any(wraps.opened(part) != part for part in (head, opened.tail(_TAIL_BYTES))):
        raise NotMine("a log whose lines are strings of the objects")
    sample = [head[begin:end] for begin, end in places(head).spans] if listed else head.split(b"\n")
    by_epoch = _sniff(map(record_of, sample), opened.budget)
    records = JsonList(places(document(opened, limits)), out) if listed else JsonLines(opened, out)
    state = _read(records, opened, MetricRows(out, limits), by_epoch=by_epoch)
    _facts(state, out)
    if isinstance(records, JsonList):
        out.format("json list")
        settle_document(opened, out, records=state.seq, lost_bytes=records.lost_bytes)
    else:
        _last_words(state, out, limits)
        out.format("json lines")
        settle(opened, out, records=state.seq, lost_bytes=records.lost_bytes, reason="lines that are no JSON object")


def _is_of_long_records(head: bytes, tail: bytes) -> bool:
    """Whether a log is made of records alone that are longer than a line of text is read (DETR: 93 losses of an epoch).

    Shorter ones are read as lines of text are, with what is printed between them.
    """
    first, *others = head.split(b"\n")[:_SAMPLE_ROWS]
    lines = (*others[:-1], *tail.split(b"\n")[1:]) if others else ()
    return len(first) > _LONGEST and all(record_of(line) is not None for line in (first, *lines) if line.strip())


def _read(
    records: Iterable[tuple[Line, dict[str, object]]], opened: Opened, rows: MetricRows, *, by_epoch: bool = False
) -> _State:
    state = _State(opened.source.rank, opened.budget, rows, Attempts(opened.source.attempt or 0), by_epoch=by_epoch)
    with closing(state.rows):  # what was read before a budget ends is kept
        for line, folded in records:
            record = _unfolded(folded)
            _add(record, line, state)
            state.most = next(
                (found for key in _MAX_STEPS if (found := number(record.get(key))) is not None), state.most
            )
            state.config = state.config or dict(islice(_config(record, opened.budget), _FACTS))
            state.seq += 1
            state.first = state.first or record
            state.last = line, record
    return state


#: A count and its plan in one text, under both names: `"global_step/max_steps": "601/2161"`.
_OF = lazily(r"(\d{1,18}) ?/ ?(\d{1,18})", re.ASCII)


def _unfolded(record: dict[str, object]) -> dict[str, object]:
    """A record with its counts under names of their own, where one text holds two; its own keys are kept."""
    counts: dict[str, object] = {}
    for key, cell in record.items():
        if isinstance(cell, str) and key.count("/") == 1 and (told := _OF.fullmatch(cell)) is not None:
            names = key.split("/")
            counts |= {name: int(count) for name, count in zip(names, told.groups(), strict=True) if name}
    return counts | record if counts else record


def _last_words(state: _State, out: Out, limits: Limits) -> None:
    """Tell what a last record says that has no metric of the first, as the last line of a log: `{"status": "done"}`."""
    if state.last is None:
        return
    line, record = state.last
    if record.get(_DONE) is True and state.first.get(_DONE) is False:
        own = {key: record[key] for key in (_DONE, *STEPS) if key in record}
        _said(line._replace(text=json.dumps(own).encode()), out, limits)
        return
    first, last = ({name for name, _ in _parsed(one, state.budget).cells} for one in (state.first, record))
    if first & last or not any(isinstance(cell, str) for cell in record.values()):
        return
    _said(line, out, limits)


def _is_outcome(opened: Opened, head: bytes) -> bool:
    """Whether a script wrote its end into this file: `{"status": "completed", "final_loss": 0.41}`."""
    is_told = opened.size_bytes <= _FEW_BYTES and stands_for("outcome_of_a_run", head.decode("utf-8", "replace"))
    return is_told and record_of(head) is not None


def _own_words(data: bytes, out: Out, limits: Limits) -> None:
    """Tell what a document says of the run beside its lists, as a last line: `{"log": […], "status": "completed"}`."""
    told = islice((record_of(data) or {}).items(), _FACTS)
    own = {key: cell[: limits.quote_chars] for key, cell in told if isinstance(cell, str)}
    if own:
        data = data.rstrip()
        _said(Line(data.count(b"\n") + 1, len(data) - 1, json.dumps(own).encode(), ended=True), out, limits)


def _said(line: Line, out: Out, limits: Limits) -> None:
    reader = Reader((), Bounds(limits.quote_chars, limits.traceback_lines))
    for tables in (*reader.feed(line.text, offset=line.byte, first_line=line.number), *reader.close()[0]):
        if "events" in tables:
            out.rows("events", tables["events"])


def _facts(state: _State, out: Out) -> None:
    told = [(key, value, "config") for key, value in state.config.items()]
    whole = int64(state.most)
    write_facts(out, told if whole is None else [*told, ("max_steps", whole, "progress")])


def _config(record: dict[str, object], budget: Budget) -> Iterator[tuple[str, object]]:
    inside = record.get(_CONFIG)
    if isinstance(inside, dict):
        for key, cell in budget.each(flat(cast("dict[str, object]", inside), "/", _NESTING), itemgetter(0)):
            if isinstance(cell, (str, int, float)):
                yield key.replace("/", "."), cell


def _sniff(records: Iterable[dict[str, object] | None], budget: Budget) -> bool:
    """Tell whether the records count epochs alone, which are the file's own axis then."""
    epochs = False
    for record in islice(records, _SAMPLE_ROWS):
        if record is not None:
            row = _parsed(_unfolded(record), budget)
            if "_step" in record:
                raise NotMine("rows of a W&B history")
            if row.cells and row.step is not None:
                return False
            epochs = epochs or (bool(row.cells) and row.epoch is not None)
    if not epochs:
        raise NotMine("no JSON record has a step or an epoch, and a number")
    return True


class _Keys(Struct, frozen=True):
    """What the keys of a record mean, the same for all records with these keys: axes in order of preference."""

    steps: tuple[tuple[str, str], ...]
    epochs: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]
    dates: tuple[tuple[str, str], ...]
    rank: str
    #: key, its lower-case form, whether it may be an axis, and its name; constants are left out
    cells: tuple[tuple[str, str, bool, str], ...]


@lru_cache(maxsize=256)
def _meaning(top: tuple[str, ...], flat: tuple[str, ...]) -> _Keys:
    """Meaning of a record's own keys (`top`) and of those of its nested objects as well (`flat`)."""
    present = frozenset(flat)
    lowered = {key.rpartition("/")[2].lower(): key for key in reversed(flat)} | {
        key.lower(): key for key in top if key in present
    }
    steps, epochs, times, dates = (
        tuple((name, lowered[name]) for name in names if name in lowered) for names in (STEPS, EPOCHS, TIMES, DATES)
    )
    axes = {key: name for name, key in (*steps, *epochs, *times, *dates)}
    named = ((key, axes.get(key, key.lower())) for key in flat)
    cells = tuple((key, name, name in _AXES, _bare(key, present)) for key, name in named if name not in CONSTANTS)
    return _Keys(steps, epochs, times, dates, next((lowered[name] for name in RANKS if name in lowered), ""), cells)


def _bare(key: str, every: AbstractSet[str]) -> str:
    """The name of a number without that of the object which holds all numbers: `loss` of `metrics/loss`."""
    holder, _, name = key.partition("/")
    return name if holder.lower() in _HOLDERS and name not in every else key


def _axis(record: Mapping[str, object], names: tuple[tuple[str, str], ...]) -> tuple[str, float | None]:
    for name, key in names:
        found = number(record.get(key))
        if found is not None:
            return name, found
    return "", None


def _time(record: Mapping[str, object], keys: _Keys) -> tuple[str, int | None]:
    """The key of a record's time and the time in ns; a key that also names a duration counts where it holds a date."""
    name, stamp = _axis(record, keys.times)
    if (t_ns := unix_ns(stamp)) is not None:
        return name, t_ns
    return next(((known, t_ns) for known, key in keys.dates if (t_ns := dated(record[key])) is not None), (name, None))


_HOLDING = frozenset((dict, list))


def _parsed(record: dict[str, object], budget: Budget) -> _Row:
    nested = any(type(cell) in _HOLDING for cell in record.values())
    own = {key: _gathered(cell) for key, cell in record.items() if key != _CONFIG} if nested else record
    every = dict(budget.each(flat(own, "/", _NESTING), itemgetter(0))) if nested else own
    keys = _meaning(tuple(record), tuple(every))
    (step_name, step), (epoch_name, epoch) = _axis(every, keys.steps), _axis(every, keys.epochs)
    time_name, t_ns = _time(every, keys)
    cells: list[tuple[str, float | None]] = []
    for key, name, may_be_axis, printed in keys.cells:
        cell = every[key]
        value = cell if type(cell) is float else number(cell)
        if value is None and cell is not None:
            continue
        if name == time_name or (may_be_axis and (name in {step_name, epoch_name} or value is None or value == step)):
            continue
        cells.append((printed, value))
    return _Row(int64(step), epoch, t_ns, int64(number(every.get(keys.rank))), _named(every, cells))


#: What a writer keeps of many samples of one number, beside their mean.
_OF_SAMPLES = frozenset(("num", "mean", "std", "count", "min", "max", "sum", "var"))


def _gathered(cell: object) -> object:
    """The mean of what was gathered over samples; any other cell as it is."""
    if not isinstance(cell, dict):
        return cell
    told = cast("dict[str, object]", cell)
    return told["mean"] if {"mean"} < told.keys() <= _OF_SAMPLES else told


def _named(record: Mapping[str, object], cells: list[tuple[str, float | None]]) -> tuple[tuple[str, float | None], ...]:
    """The numbers by their names: of a record of one number, its name may be a text beside it, as `"name": "loss"`."""
    own = {key.lower(): (key, value) for key, value in cells}
    told = next((own[key] for key in _VALUES if key in own), None)
    texts = {key.lower(): cell for key, cell in record.items() if isinstance(cell, str)}
    name = next((texts[key] for key in _NAMES if texts.get(key)), None)
    others = [key for key, (_, one) in own.items() if one is not None and key not in {*_VALUES, *TIMES, *DATES}]
    return tuple(cells) if told is None or name is None or others else ((name, told[1]),)


def _add(record: dict[str, object], line: Line, state: _State) -> None:
    row = _parsed(record, state.budget)
    if state.by_epoch:
        row = replace(row, step=int64(row.epoch))
    place = state.splits.place(record, row.step, row.epoch)
    rank = state.rank if row.rank is None else row.rank
    at = At(state.seq, 0, rank, line.number, line.byte, place.step, place.epoch, row.t_ns, place.gstep)
    see, add = state.attempts.see, state.rows.add
    for key, value in row.cells:
        name = within(place.split, key)
        if (attempt := see(name if rank is None else f"{rank} {name}", place.step, place.epoch)) != at.attempt:
            at = at._replace(attempt=attempt)
        add(at, name, value)


_HOLDER = rb'"(?:' + b"|".join(key.encode() for key in sorted(_HOLDERS)) + rb')"\s*:\s*'
#: A list of objects within an object, below a key that holds metrics, or one of which the first names a loss.
_LISTED = lazily(rb'"\s*:\s*\[\s*\{[^][]{0,500}"[^"]{0,60}loss|' + _HOLDER + rb"\[\s*\{")
_FEWEST = 3
#: The state of a Trainer, which has a reader of its own.
_STATE = b'"log_history"'


def _rows_of(head: bytes, opened: Opened, limits: Limits) -> list[tuple[Line, dict[str, object]]] | None:
    """Read the list of records of a document that is one object: `{"config": …, "epochs": [{…}, …]}`.

    They name a loss; below a key that holds metrics they may count their steps or epochs instead. All stand in the line
    where the list begins.
    """
    if head.lstrip()[:1] != b"{" or _LISTED.search(head) is None or _STATE in head:
        return None
    data = document(opened, limits)
    for name, cell in (record_of(data) or {}).items():
        rows = cast("list[object]", cell) if isinstance(cell, list) else []
        records = [cast("dict[str, object]", one) for one in rows if isinstance(one, dict)]
        if not len(records) == len(rows) >= _FEWEST:
            continue
        names = {key for key, _ in flat(records[0], "/", _NESTING)}
        axes = [key for key in names if key.rpartition("/")[2].lower() in (*STEPS, *EPOCHS)]
        held = name.lower() in _HOLDERS and any(_rises(records, key) for key in axes if key in records[0])
        if held or any(canonical(key).canonical == "loss" for key in names):
            if not axes:  # its place in the list counts, from 1
                records = [{"epoch": index, **record} for index, record in enumerate(records, 1)]
            number_of_line, at = offsets_of(data, {(name,)}).of((name,))
            return [(Line(number_of_line or 1, at or 0, b"", ended=True), record) for record in records]
    return None


def _rises(records: Sequence[Mapping[str, object]], key: str) -> bool:
    """Whether each record counts on from the one before it."""
    counts = [number(record.get(key)) for record in records]
    return all(a is not None and b is not None and a < b for a, b in pairwise(counts))


_LIST = rb'"[^"\\]{1,200}"\s*:\s*\[\s*(?:[-+\d]|NaN|null|"?-?inf)'
#: The head of such a document: its first key has a list of numbers.
_HEAD = lazily(rb"\s*\{\s*" + _LIST, 0)
#: An object within it that begins so.
_HELD = lazily(rb'"[^"\\]{1,200}"\s*:\s*\{\s*' + _LIST, 0)


class JsonColumns(Struct, frozen=True):
    """The records of a document of lists, that of one index in one; its lists have one length, all else is left out."""

    columns: dict[str, list[object]]
    line: Line
    is_held: bool = False

    @property
    def is_of_metrics(self) -> bool:
        """Whether it says so itself, whatever its name: by the key that holds it, by its steps, or by a loss."""
        names = self.columns.keys()
        of_loss = len(names) > 1 and any(canonical(name).canonical == "loss" for name in names)
        return self.is_held or of_loss or not names.isdisjoint(STEPS)

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Give them in order; where no list counts steps, the place in the lists does, from 1."""
        counted = any(name.lower() in STEPS for name in self.columns)
        for index, cells in enumerate(zip(*self.columns.values(), strict=True), 1):
            record = dict(zip(self.columns, cells, strict=True))
            yield self.line, record if counted else {"step": index, **record}


def may_be_columns(head: bytes) -> bool:
    """Whether a document begins as one of lists does."""
    return _HEAD.match(head) is not None or (head.lstrip()[:1] == b"{" and _HELD.search(head) is not None)


def columns_of(data: bytes) -> JsonColumns | None:
    """Read the lists of numbers that are as long as the longest; None where the document has none of two numbers.

    They stand in the document itself, or in the first of its objects that holds all numbers, or each in that of its
    data (`{"train": {"loss": […]}, "val": …}`), with a loss among them.
    """
    document = record_of(data) or {}
    objects = {key: cast("dict[str, object]", cell) for key, cell in document.items() if isinstance(cell, dict)}
    own = {(key,): cell for key, cell in document.items()}
    held = [
        {(key, name): one for name, one in cell.items()} for key, cell in objects.items() if key.lower() in _HOLDERS
    ]
    split = {(key, name): one for key, cell in objects.items() if _is_split(key) for name, one in cell.items()}
    for paths in (own, *held, split):
        lists = {path: cast("list[object]", cell) for path, cell in paths.items() if _are_numbers(cell)}
        longest = max(map(len, lists.values()), default=0)
        whole = {path: cells for path, cells in lists.items() if len(cells) == longest}
        kept = {"/".join(path) if paths is split else path[-1]: cells for path, cells in whole.items()}
        if longest < 2 or (paths is not own and not any(map(_is_cost, kept))):
            continue
        where = next(iter(whole))
        number_of_line, at = offsets_of(data, {where}).of(where)
        return JsonColumns(kept, Line(number_of_line or 1, at or 0, b"", ended=True), is_held=len(where) > 1)
    return None


def _is_cost(name: str) -> bool:
    """Whether a name is that of a loss, or of what trees are boosted for, behind its split: `valid_0/rmse`."""
    own = name.rpartition("/")[2]
    known = (stands_for(means, one) for means in ("whole_loss", "objective") for one in (name, own))
    return canonical(name).canonical == "loss" or any(known)


def _is_split(key: str) -> bool:
    return stands_for("names_a_split_only", key) or stands_for("held_out_word", key)


def _are_numbers(cell: object) -> bool:
    return isinstance(cell, list) and all(one is None or number(one) is not None for one in cast("list[object]", cell))
