"""W&B transaction logs (`run-ID.wandb`): history, system metrics, console, settings and exit; damage is told.

The log of a killed run is often all that is left of it: settings, console and exit are in no other file. Every row
names its byte in the file, and that is also the order of history and console among each other. `gstep` is the axis that
`define_metric` names, in the same row or else as last seen, where it counts steps; else it is `_step`. System metrics
have raw names with `system.` before them, as the exports of W&B spell them, and no step.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct, field

from forensics.dialects.clocks import Calendar
from forensics.dialects.reader import Bounds
from forensics.dialects.spec import Name
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.metrics import At, MetricRows
from forensics.formats.wandb._console import Console
from forensics.formats.wandb._define import definition
from forensics.formats.wandb._facts import Facts
from forensics.formats.wandb._history import History, Row
from forensics.formats.wandb._items import items, leaves, parts, plain_number
from forensics.formats.wandb._marks import Marks, exit_code, stamp_ns
from forensics.formats.wandb._points import Points
from forensics.formats.wandb._summaries import Summaries
from forensics.formats.wandb._system import PREFIX, system_name
from forensics.io.records import leveldb_log
from forensics.io.records.leveldb_log import Batch, Damage, Record
from forensics.io.records.protobuf import BYTES, WireError, fields

_MAGIC = b":W&B"
_VERSION = b"\xe1\xbe\x00"
_OUTPUT, _CONFIG, _STATS, _ALERT, _TELEMETRY, _METRIC, _RAW = 4, 5, 7, 10, 11, 12, 13
_RUN, _EXIT, _FINAL, _HEADER, _FOOTER, _PREEMPTING, _ENVIRONMENT = 17, 18, 20, 21, 22, 23, 26
_STREAMS = {0: "stderr", 1: "stdout"}
_WHY = {
    "truncated": "the file ends inside a record, as a killed writer leaves it",
    "zeroed": "a stretch of the file is zero",
    "bad-chunk": "a part of the log fails its checksum or has no sound header",
    "unfinished": "the other parts of a record are missing",
    "record-too-long": "a record is longer than the limit",
}
#: Above this size rows are decoded together; numpy then pays for its import.
_MANY_BYTES = 256 << 10


class _State(Struct):
    out: Out
    limits: Limits
    rank: int | None
    year: int
    history: History
    marks: Marks
    facts: Facts
    summaries: Summaries
    consoles: dict[tuple[int, int], Console] = field(default_factory=dict[tuple[int, int], Console])
    console_ns: int = 0
    exits: int = 0

    @property
    def t_ns(self) -> int | None:
        """The last time that was met."""
        return max(self.history.t_ns or 0, self.console_ns) or None


@ingester(
    "wandb_run",
    version=3,
    sniff=Sniff(glob=("run-*.wandb", "*.wandb"), magic=(_MAGIC,)),
    emits=("metrics", "events", "checkpoints", "progress", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one transaction log; memory is bounded by a few thousand rows.

    Raises `NotMine` when it does not begin with the mark of such logs.
    """
    if opened.compression:
        out.issue("compressed", "a compressed transaction log is not read; expand it and run again")
        out.account(skipped_bytes=opened.size_bytes, reason="compressed transaction log")
        return
    head = opened.head(leveldb_log.HEADER_BYTES)
    if not head.startswith(_MAGIC):
        raise NotMine("no W&B transaction log")
    if head[4:] != _VERSION:
        out.issue("unknown-version", f"the header is {head.hex()}; it is read like the known version", byte=4)
    state = _state(opened, out, limits)
    records = lost = 0
    with memoryview(opened.raw()) as view:
        for item in leveldb_log.batches(view, limits):
            if isinstance(item, Damage):
                lost += _lost(item, out)
                opened.passed(item.byte)
            else:
                records += len(item.starts)
                _records(item, view, state)
                opened.passed(item.starts[-1] if item.starts else 0)
    _finish(state)
    out.account(read_bytes=opened.size_bytes - lost, records=records)


def _lost(item: Damage, out: Out) -> int:
    out.issue(item.code, f"{_WHY[item.code]} ({item.size_bytes} bytes)", byte=item.byte)
    out.account(skipped_bytes=item.size_bytes, reason=item.code)
    return item.size_bytes


def _state(opened: Opened, out: Out, limits: Limits) -> _State:
    source = opened.source
    year = time.gmtime(source.mtime_ns / 1e9).tm_year if source.mtime_ns else 1970
    many = opened.size_bytes > min(_MANY_BYTES, limits.block_bytes)
    history = History(Points(MetricRows(out, limits)), Attempts(source.attempt or 0), source.rank, many, limits)
    facts = Facts()
    marks = Marks(out, source.rank, limits.quote_chars)
    return _State(out, limits, source.rank, year, history, marks, facts, Summaries(facts, many, limits))


def _not_a_record(number: int, byte: int, why: str, out: Out) -> None:
    out.issue("not-a-record", f"record {number} is sound but no message: {why}", byte=byte)


def _finish(state: _State) -> None:
    state.history.flush()
    for number, byte, why in state.history.odd:
        _not_a_record(number, byte, why, state.out)
    state.history.points.close(state.facts.version)
    dialects: list[str] = []
    for _, console in sorted(state.consoles.items()):
        console.close()
        dialects += [name for name in console.dialects if name not in dialects]
    state.summaries.write()
    if not state.exits:
        state.facts.put("exit", "exit_record", value=False)
    state.facts.write(state.out)
    state.out.format("+".join(("wandb", *dialects)))


def _records(batch: Batch, view: memoryview, state: _State) -> None:
    rows: dict[int, list[Row]] = {HISTORY: [], SUMMARY: []}
    for n in range(len(batch.starts)):
        record = batch.record(n, view)
        kind, at = usual(record.payload)
        if kind:
            rows[kind].append((record.number, record.byte, record.payload, at, len(record.payload)))
            continue
        _fed(rows, state)
        try:
            _record(record, state)
        except WireError as error:
            _not_a_record(record.number, record.byte, str(error), state.out)
    _fed(rows, state)


def _fed(rows: dict[int, list[Row]], state: _State) -> None:
    """Pass on what was collected."""
    state.history.feed(rows[HISTORY])
    state.summaries.feed(rows[SUMMARY])
    rows[HISTORY], rows[SUMMARY] = [], []


def _record(record: Record, state: _State) -> None:
    """Read what a record holds: of the kinds that it names, all of one `oneof`, the last counts."""
    data = record.payload
    held: tuple[_Act, int, int] | None = None
    for number, kind, at, end in fields(data, 0, len(data)):
        if kind == BYTES and (act := _ACTS.get(number)) is not None:
            held = act, at, end
    if held is not None:
        act, at, end = held
        act(record, at, end, state)


def _stats(record: Record, at: int, end: int, state: _State) -> None:
    data = record.payload
    t_ns = max((stamp_ns(data, *stamp) for stamp in parts(data, at, end, 2)), default=0)
    points: list[tuple[str, float, Name]] = []
    for key, value in items(data, at, end, 3):
        number = plain_number(value)
        if number is not None:
            name = key.decode("utf-8", "replace")
            points.append((PREFIX + name, number, system_name(name, state.facts.version)))
    state.history.beside(At(record.byte, rank=state.rank, byte=record.byte, t_ns=t_ns or None), points)


def _metric(record: Record, at: int, end: int, state: _State) -> None:
    what = definition(record.payload, at, end)
    state.history.flush()
    state.history.axes.define(what)
    state.facts.define(what)


def _console(record: Record, at: int, end: int, state: _State, *, kind_of: int) -> None:
    data = record.payload
    stream = dict(leaves(data, at, end, {1: "stream"})).get("stream", 0)
    t_ns = max((stamp_ns(data, *stamp) for stamp in parts(data, at, end, 2)), default=0)
    line = next(parts(data, at, end, 3), None)
    if line is None or not isinstance(stream, int) or stream not in _STREAMS:
        return
    state.console_ns = t_ns or state.console_ns
    console = state.consoles.get((kind_of, stream))
    if console is None:
        if kind_of == _OUTPUT and (_RAW, stream) in state.consoles:
            return
        kept = Bounds(state.limits.quote_chars, state.limits.traceback_lines, Calendar(state.year))
        console = Console(state.out, kept, state.rank, state.limits.block_bytes)
        state.consoles[kind_of, stream] = console
    console.feed(data[line[0] : line[1]], record.file_byte(line[0]), t_ns)


def _run(record: Record, at: int, end: int, state: _State) -> None:
    state.history.flush()
    state.summaries.write()  # the run may bring a summary of its own
    step, how = state.facts.run(record.payload, at, end)
    if how:
        state.marks.begun(record.byte, state.t_ns, step, how)


def _exit(record: Record, at: int, end: int, state: _State) -> None:
    code = exit_code(record.payload, at, end)
    state.history.flush()
    state.exits += 1
    state.facts.put("exit", "exit_code", code)
    state.marks.exit(record.byte, state.t_ns, code)


def _closing(name: str, record: Record, at: int, end: int, state: _State) -> None:
    del record, at, end
    state.facts.put("exit", name, value=True)


def _alert(record: Record, at: int, end: int, state: _State) -> None:
    state.history.flush()
    state.marks.alert(record.payload, at, end, byte=record.byte, t_ns=state.t_ns)


def _preempting(record: Record, at: int, end: int, state: _State) -> None:
    del at, end
    state.history.flush()
    state.facts.put("exit", "preempting", value=True)
    state.marks.preempting(record.byte, state.t_ns)


_Act = Callable[[Record, int, int, _State], None]


# The two most frequent records of a large log: a history row and a summary, each all of a record but its number.

HISTORY, SUMMARY = 2, 3
_NUMBER, _LARGE = 8, (18, 26)  # tags: the number of a record; a history row and a summary
_MOST_NUMBER_BYTES, _MOST_SHIFT, _FEWEST_BYTES = 11, 35, 8


def usual(data: bytes) -> tuple[int, int]:
    """Field and start of a history row or summary that is all of a record but its number; 0 for any other record."""
    at, size = 0, len(data)
    if size > 12 and data[0] == _NUMBER:
        at = 2
        while data[at - 1] > 127 and at < _MOST_NUMBER_BYTES:
            at += 1
    if size < at + _FEWEST_BYTES or data[at] not in _LARGE:
        return 0, 0
    kind = data[at] >> 3
    length, at, shift = data[at + 1] & 127, at + 2, 7
    while data[at - 1] > 127 and shift < _MOST_SHIFT:
        length |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return (kind, at) if at + length == size else (0, 0)


_ACTS: dict[int, _Act] = {
    HISTORY: lambda record, at, end, state: state.history.feed([(record.number, record.byte, record.payload, at, end)]),
    SUMMARY: lambda record, at, end, state: state.summaries.feed(
        [(record.number, record.byte, record.payload, at, end)]
    ),
    _OUTPUT: lambda record, at, end, state: _console(record, at, end, state, kind_of=_OUTPUT),
    _CONFIG: lambda record, at, end, state: state.facts.config(record.payload, at, end),
    _STATS: _stats,
    _ALERT: _alert,
    _TELEMETRY: lambda record, at, end, state: state.facts.telemetry(record.payload, at, end),
    _METRIC: _metric,
    _RAW: lambda record, at, end, state: _console(record, at, end, state, kind_of=_RAW),
    _RUN: _run,
    _EXIT: _exit,
    _FINAL: lambda record, at, end, state: _closing("final_record", record, at, end, state),
    _HEADER: lambda record, at, end, state: state.facts.header(record.payload, at, end),
    _FOOTER: lambda record, at, end, state: _closing("footer_record", record, at, end, state),
    _PREEMPTING: _preempting,
    _ENVIRONMENT: lambda record, at, end, state: state.facts.environment(record.payload, at, end),
}
