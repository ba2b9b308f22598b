"""W&B transaction logs (`run-ID.wandb`): history, console, settings and exit, with damage passed over and told.

The log of a killed run is often all that is left of it: settings, console and exit stand in no other file. Every row
names the byte of the file at which it stands, and that is also the order of history and console among each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from forensics.errors import NotMine
from forensics.ingest._attempts import Attempts
from forensics.ingest._metric_rows import At, MetricRows, class_of, int64, nanoseconds
from forensics.ingest._out import Out
from forensics.ingest._tf_wire import BYTES, VARINT, WireError, fields, signed, varint
from forensics.ingest._wandb_console import Console, bounds
from forensics.ingest._wandb_facts import Facts
from forensics.ingest._wandb_items import items, numbers_of, plain_number
from forensics.io import leveldb_log
from forensics.io.leveldb_log import Damage, Record
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.tolerant_json import dumps
from forensics.registry import Sniff, ingester

_MAGIC = b":W&B"
_VERSION = b"\xe1\xbe\x00"
_HISTORY, _OUTPUT, _CONFIG, _RAW, _RUN, _EXIT, _HEADER, _ENVIRONMENT = 2, 4, 5, 13, 17, 18, 21, 26
_STREAMS = {0: "stderr", 1: "stdout"}
_WHY = {
    "truncated": "the file ends inside a record, as a killed writer leaves it",
    "zeroed": "a stretch of the file is zero",
    "bad-chunk": "a part of the log fails its checksum or has no sound header",
    "unfinished": "the other parts of a record are missing",
    "record-too-long": "a record is longer than the limit",
}
_AXES = frozenset(("_step", "_timestamp", "epoch"))
_KEYS = 100_000


@dataclass(slots=True)
class _State:
    out: Out
    limits: Limits
    rank: int | None
    year: int
    rows: MetricRows
    attempts: Attempts
    facts: Facts = field(default_factory=Facts)
    consoles: dict[tuple[int, int], Console] = field(default_factory=dict[tuple[int, int], Console])
    names: dict[bytes, str] = field(default_factory=dict[bytes, str])
    numeric: set[str] = field(default_factory=set[str])
    t_ns: int | None = None
    exits: int = 0


@ingester(
    "wandb_run",
    version=1,
    sniff=Sniff(glob=("run-*.wandb", "*.wandb"), magic=(_MAGIC,)),
    emits=("metrics", "events", "checkpoints", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one transaction log.

    Raises:
        NotMine: when it does not begin with the mark of such logs.
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
    mtime_ns = opened.source.mtime_ns
    year = time.gmtime(mtime_ns / 1e9).tm_year if mtime_ns else 1970
    state = _State(out, limits, opened.source.rank, year, MetricRows(out), Attempts(opened.source.attempt or 0))
    records = lost = 0
    for item in leveldb_log.read(opened.raw(), limits):
        if isinstance(item, Damage):
            out.issue(item.code, f"{_WHY[item.code]} ({item.size_bytes} bytes)", byte=item.byte)
            out.account(skipped_bytes=item.size_bytes, reason=item.code)
            lost += item.size_bytes
            continue
        records += 1
        try:
            _record(item, state)
        except WireError as error:
            out.issue("not-a-record", f"record {item.index} is sound but no message: {error}", byte=item.byte)
    _finish(state)
    out.account(read_bytes=opened.size_bytes - lost, records=records)


def _finish(state: _State) -> None:
    state.rows.close()
    dialects: list[str] = []
    for _, console in sorted(state.consoles.items()):
        console.close()
        dialects += [name for name in console.dialects if name not in dialects]
    if not state.exits:
        state.facts.put("exit", "exit_record", value=False)
    state.facts.write(state.out)
    state.out.format("+".join(("wandb", *dialects)))


def _record(record: Record, state: _State) -> None:
    data = record.payload
    for number, kind, at, end in fields(data, 0, len(data)):
        if kind != BYTES:
            continue
        act = _ACTS.get(number)
        if act is not None:
            act(record, at, end, state)


def _history(record: Record, at: int, end: int, state: _State) -> None:
    axes: dict[str, float | None] = {}
    cells: list[tuple[str, bytes]] = []
    for key, value in items(record.payload, at, end):
        name = _name(key, state)
        if name in _AXES:
            axes[name] = plain_number(value)
        elif not name.startswith("_"):
            cells.append((name, value))
    step = int64(axes.get("_step"))
    if step is None:
        step = _history_step(record.payload, at, end)
    t_ns = nanoseconds(axes.get("_timestamp"))
    state.t_ns = t_ns or state.t_ns
    where = At(
        record.byte,
        attempt=state.attempts.see("_step", step),
        rank=state.rank,
        byte=record.byte,
        step=step,
        epoch=axes.get("epoch"),
        t_ns=t_ns,
    )
    for name, value in cells:
        number = plain_number(value)
        for key, found in ((name, number),) if number is not None else numbers_of(name, value):
            _point(where, key, found, state)


def _name(key: bytes, state: _State) -> str:
    name = state.names.get(key)
    if name is None:
        name = key.decode("utf-8", "replace")
        if len(state.names) < _KEYS:
            state.names[key] = name
    return name


def _point(where: At, name: str, number: float | None, state: _State) -> None:
    if number is None:
        lost = "null-suspected-nan" if name in state.numeric else class_of(None)
        state.rows.add(where, name, None, value_class=lost)
        return
    if name not in state.numeric and len(state.numeric) < _KEYS:
        state.numeric.add(name)
    state.rows.add(where, name, number)


def _history_step(data: bytes, at: int, end: int) -> int | None:
    for number, kind, start, stop in fields(data, at, end):
        if number == 2 and kind == BYTES:
            for inner, inner_kind, a, _ in fields(data, start, stop):
                if inner == 1 and inner_kind == VARINT:
                    return signed(varint(data, a)[0])
            return 0
    return None


def _console(record: Record, at: int, end: int, state: _State, *, kind_of: int) -> None:
    data, stream, t_ns, line = record.payload, 0, 0, None
    for number, kind, start, stop in fields(data, at, end):
        if number == 1 and kind == VARINT:
            stream = varint(data, start)[0]
        elif number == 2 and kind == BYTES:
            t_ns = _timestamp(data, start, stop)
        elif number == 3 and kind == BYTES:
            line = start, stop
    if line is None or stream not in _STREAMS:
        return
    state.t_ns = t_ns or state.t_ns
    console = state.consoles.get((kind_of, stream))
    if console is None:
        if kind_of == _OUTPUT and (_RAW, stream) in state.consoles:
            return
        console = Console(
            state.out, bounds(state.limits.quote_chars, state.limits.traceback_lines, state.year), state.rank
        )
        state.consoles[kind_of, stream] = console
    console.feed(data[line[0] : line[1]], record.file_byte(line[0]), t_ns)


def _timestamp(data: bytes, at: int, end: int) -> int:
    seconds = nanos = 0
    for number, kind, start, _ in fields(data, at, end):
        if kind == VARINT and number == 1:
            seconds = signed(varint(data, start)[0])
        elif kind == VARINT and number == 2:
            nanos = signed(varint(data, start)[0])
    return seconds * 1_000_000_000 + nanos if 0 < seconds < 9_200_000_000 and 0 <= nanos < 1_000_000_000 else 0


def _exit(record: Record, at: int, end: int, state: _State) -> None:
    code = 0
    for number, kind, start, _ in fields(record.payload, at, end):
        if number == 1 and kind == VARINT:
            code = signed(varint(record.payload, start)[0])
    state.exits += 1
    state.facts.put("exit", "exit_code", code)
    attrs = (
        {"role": "benign", "family": "success", "cause": "success", "exit_code": "0"}
        if code == 0
        else {"role": "context", "shape": "", "exit_code": str(code)}
    )
    row = {
        "seq": record.byte,
        "byte": record.byte,
        "t_ns": state.t_ns,
        "rank": state.rank,
        "level": "info" if code == 0 else "error",
        "code": "success" if code == 0 else "wandb.exit",
        "text": f"exit record of the run: exit code {code}",
        "attrs": dumps(attrs, compact=True).decode(),
    }
    state.out.rows("events", {name: [cell] for name, cell in row.items()})


_Act = Callable[[Record, int, int, _State], None]
_ACTS: dict[int, _Act] = {
    _HISTORY: _history,
    _OUTPUT: lambda record, at, end, state: _console(record, at, end, state, kind_of=_OUTPUT),
    _RAW: lambda record, at, end, state: _console(record, at, end, state, kind_of=_RAW),
    _CONFIG: lambda record, at, end, state: state.facts.config(record.payload, at, end),
    _RUN: lambda record, at, end, state: state.facts.run(record.payload, at, end),
    _EXIT: _exit,
    _HEADER: lambda record, at, end, state: state.facts.header(record.payload, at, end),
    _ENVIRONMENT: lambda record, at, end, state: state.facts.environment(record.payload, at, end),
}
