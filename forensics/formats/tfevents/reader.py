"""TensorBoard event files: every scalar of every record, with its place; damage is passed over and reported.

Nothing is purged or sampled: a restart begins the next attempt, and the points it overwrites stay. A record whose
checksum fails is dropped, because its number could be the one that was hit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from forensics.errors import MissingPackage, NotMine
from forensics.formats.rows.metrics import nanoseconds
from forensics.formats.rows.out import Out
from forensics.formats.tfevents import _notes as notes
from forensics.formats.tfevents._event import SESSION_START, Event, Value, WireError, parse_event, values
from forensics.formats.tfevents._points import Points
from forensics.formats.tfevents._routes import ALL, Columns, Routes, walk
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.records import tfrecord
from forensics.io.tolerant_json import dumps
from forensics.registry import Sniff, ingester

_WHY = {
    "header-crc": "the length of a record fails its checksum; reading goes on at the next sound record",
    "payload-crc": "a record fails its checksum and is dropped",
    "truncated": "the file ends inside a record",
    "record-too-long": "a record is longer than the limit",
}
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\x1b")
_TEXTS = 1_000
_NOTES = ("hparams", "text")
_TAGS = 100_000


@dataclass(slots=True)
class _State:
    out: Out
    points: Points
    plugins: dict[str, str] = field(default_factory=dict[str, str])
    quote_chars: int = 400
    texts: int = 0
    version: str = ""
    missing: bool = False


@ingester(
    "tfevents",
    version=1,
    sniff=Sniff(glob=("*tfevents*",)),
    emits=("metrics", "facts", "events"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one event file.

    Raises:
        NotMine: when the content is printable text that merely has such a name.
    """
    if opened.compression:
        out.issue("compressed", "a compressed event file is not read; expand it and run again")
        out.account(skipped_bytes=opened.size_bytes, reason="compressed event file")
        return
    head = opened.head(4096)
    if head and not tfrecord.has_header(head) and not _CONTROL.intersection(head):
        raise NotMine("no record at the start, and no binary file")
    read_points(opened, out, limits)


def read_points(opened: Opened, out: Out, limits: Limits, routes: Routes = ALL) -> None:
    """Read what is an event file, by the quick routes given; none of them changes what is read."""
    points = Points(out, opened.source.rank, opened.source.attempt or 0, limits.batch_rows)
    state = _State(out, points, quote_chars=limits.quote_chars)
    for item in walk(opened.raw(), limits, points.tags, lambda record, into: _record(record, into, state), routes):
        if isinstance(item, tfrecord.Damage):
            message = f"{_WHY[item.code]} ({item.size_bytes} bytes)"
            out.issue(item.code, message, byte=item.byte)
            out.account(skipped_bytes=item.size_bytes, reason=item.code)
        else:
            points.add(item.batch)
            out.account(read_bytes=item.size_bytes, records=item.records)
    points.close()
    out.format(state.version or "tfevents")


def _record(record: tfrecord.Record, into: Columns, state: _State) -> None:
    out = state.out
    size = len(record.payload) + tfrecord.FRAME_BYTES
    try:
        event = parse_event(record.payload)
        unread = [_missing(value, event, record, into, state) for value in values(record.payload, event)]
    except WireError as error:
        out.issue("not-an-event", f"record {record.index} is sound but no event message: {error}", byte=record.byte)
        out.account(skipped_bytes=size, reason="not an event message")
        return
    missing = next((error for error in unread if error is not None), None)
    if missing is None:
        out.account(read_bytes=size, records=1)
    else:
        if not state.missing:
            out.issue("package-missing", f"text and hyperparameters: {missing.message}", byte=record.byte)
        state.missing = True
        out.account(skipped_bytes=size, reason=f"needs {missing.package}")
    state.version = state.version or event.file_version
    if event.session == SESSION_START:
        into.marks.append(record.index)


def _missing(
    value: Value, event: Event, record: tfrecord.Record, into: Columns, state: _State
) -> MissingPackage | None:
    """Read one value; gives what is missing where it needs a package that is not installed."""
    try:
        _value(value, event, record, into, state)
    except MissingPackage as error:
        return error
    return None


def _value(value: Value, event: Event, record: tfrecord.Record, into: Columns, state: _State) -> None:
    plugin = value.plugin or state.plugins.get(value.tag, "")
    if value.plugin in _NOTES and len(state.plugins) < _TAGS:
        state.plugins[value.tag] = value.plugin
    if value.scalar is not None:
        tag = state.points.tags.number(value.tag)
        into.add(tag, (record.index, record.byte), (event.step, event.wall_time), value.scalar)
    elif plugin == "hparams":
        _facts(list(notes.hparams_of(value.raw)), state.out)
    elif value.is_text and (plugin == "text" or value.tag.endswith("/text_summary")):
        _text(value, event, record, state)


def _facts(facts: list[tuple[str, str, str]], out: Out) -> None:
    if facts:
        keys, texts, families = zip(*facts, strict=True)
        out.rows("facts", {"key": keys, "value": texts, "family": families})


def _text(value: Value, event: Event, record: tfrecord.Record, state: _State) -> None:
    out = state.out
    state.texts += 1
    if state.texts > _TEXTS:
        return
    text = notes.text_of(value.raw)
    if text is None:
        out.issue("text-not-read", f"the text of {value.tag[:100]!r} is too long or no text", byte=record.byte)
        return
    facts = list(notes.config_of(value.tag, text))
    if facts:
        _facts(facts, out)
        return
    row = {
        "seq": record.index,
        "byte": record.byte,
        "t_ns": nanoseconds(event.wall_time),
        "step": event.step,
        "level": "info",
        "code": "text",
        "text": text[: state.quote_chars],
        "attrs": dumps({"role": "benign", "tag": value.tag}, compact=True).decode(),
    }
    out.rows("events", {name: [cell] for name, cell in row.items()})
