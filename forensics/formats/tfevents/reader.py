"""TensorBoard event files: every scalar of every record, with its place; damage is passed over and reported.

Nothing is purged or sampled: a restart begins the next attempt, and the points it overwrites stay. A record whose
checksum fails is dropped, because its number could be the one that was hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from forensics.errors import MissingPackage, NotMine
from forensics.formats.kit import Limits, Opened, Out, Sniff, ingester
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import object_of
from forensics.formats.rows.metrics import MetricRows, nanoseconds
from forensics.formats.rows.out import write_row
from forensics.formats.tfevents._event import SESSION_START, Event, Value, WireError, parse_event, values
from forensics.io.optional import optional
from forensics.io.tolerant_json import dumps
from forensics.patterns import lazily

if TYPE_CHECKING:  # these need numpy, which a run without event files does not load for them
    from forensics.formats.tfevents._points import Points
    from forensics.formats.tfevents._routes import Columns, Routes
    from forensics.io.records.tfrecord import Record

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
MOST_BYTES = 1 << 20
_FAILURE = 2
#: The text below the header of a Markdown table of two columns, and a row of it.
_RULED = "|-|-|"
_ROW = lazily(r"(?m)^\|([A-Za-z_][\w.-]*)\|([^|\n]*)\|")


class _State(Struct):
    out: Out
    points: Points
    plugins: dict[str, str] = field(default_factory=dict[str, str])
    quote_chars: int = 400
    texts: int = 0
    version: str = ""
    missing: bool = False


@ingester("tfevents", version=1, sniff=Sniff(glob=("*tfevents*",)), emits=("metrics", "facts", "events"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one event file; raises `NotMine` when the content is printable text that merely has such a name."""
    if opened.compression:
        out.issue("compressed", "a compressed event file is not read; expand it and run again")
        out.account(skipped_bytes=opened.size_bytes, reason="compressed event file")
        return
    from forensics.io.records import tfrecord  # noqa: PLC0415 - it needs numpy

    head = opened.head(4096)
    if head and not tfrecord.has_header(head) and not _CONTROL.intersection(head):
        raise NotMine("no record at the start, and no binary file")
    read_points(opened, out, limits)


def read_points(opened: Opened, out: Out, limits: Limits, routes: Routes | None = None) -> None:
    """Read what is an event file, by all quick routes or those given; none of them changes what is read."""
    from forensics.formats.tfevents._points import Points  # noqa: PLC0415 - same
    from forensics.formats.tfevents._routes import ALL, walk  # noqa: PLC0415 - same
    from forensics.io.records.tfrecord import Damage  # noqa: PLC0415 - same

    attempts = Attempts(opened.source.attempt or 0)
    points = Points(MetricRows(out, limits), opened.source.rank, attempts, limits.batch_rows)
    state = _State(out, points, quote_chars=limits.quote_chars)
    for item in walk(
        opened.raw(), limits, points.tags, lambda record, into: _record(record, into, state), routes or ALL
    ):
        if isinstance(item, Damage):
            message = f"{_WHY[item.code]} ({item.size_bytes} bytes)"
            out.issue(item.code, message, byte=item.byte)
            out.account(skipped_bytes=item.size_bytes, reason=item.code)
            opened.passed(item.byte)
        else:
            points.add(item.batch)
            opened.passed(int(item.batch.byte[-1]) if len(item.batch.byte) else 0)
            out.account(read_bytes=item.size_bytes, records=item.records)
    points.close()
    out.format(state.version or "tfevents")


def _record(record: Record, into: Columns, state: _State) -> None:
    out = state.out
    size = record.size_bytes
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


def _missing(value: Value, event: Event, record: Record, into: Columns, state: _State) -> MissingPackage | None:
    """Read one value; gives what is missing where it needs a package that is not installed."""
    try:
        _value(value, event, record, into, state)
    except MissingPackage as error:
        return error
    return None


def _value(value: Value, event: Event, record: Record, into: Columns, state: _State) -> None:
    plugin = value.plugin or state.plugins.get(value.tag, "")
    if value.plugin in _NOTES and len(state.plugins) < _TAGS:
        state.plugins[value.tag] = value.plugin
    if value.scalar is not None:
        tag = state.points.tags.number(value.tag)
        into.add(tag, (record.index, record.byte), (event.step, event.wall_time), value.scalar)
    elif plugin == "hparams":
        write_facts(state.out, hparams_of(value.raw))
    elif value.is_text and (plugin == "text" or value.tag.endswith("/text_summary")):
        _text(value, event, record, state)


def _text(value: Value, event: Event, record: Record, state: _State) -> None:
    out = state.out
    state.texts += 1
    if state.texts > _TEXTS:
        return
    text = text_of(value.raw)
    if text is None:
        out.issue("text-not-read", f"the text of {value.tag[:100]!r} is too long or no text", byte=record.byte)
        return
    facts = list(config_of(value.tag, text))
    if facts:
        write_facts(out, facts)
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
    write_row(out, "events", row)


# Text and hyperparameters of event files, read with tensorboard's own message classes, which load on first use.
#
# Each of these raises `MissingPackage` where tensorboard is not installed.


def _message(module: str, name: str, raw: bytes) -> Any:  # noqa: ANN401 - generated classes have no types
    """Decode with the class `name` of a generated module; None for what is too long or no such message."""
    if len(raw) > MOST_BYTES:
        return None
    decode_error = optional("google.protobuf.message", "tensorboard").DecodeError
    found = optional(module, "tensorboard")
    for part in name.split("."):
        found = getattr(found, part)
    try:
        return found.FromString(raw)
    except decode_error:
        return None


def _held(raw: bytes) -> Any:  # noqa: ANN401
    return _message("tensorboard.compat.proto.summary_pb2", "Summary.Value", raw)


def text_of(raw: bytes) -> str | None:
    """Text of a string tensor, its elements joined by newlines; None when it is no such thing."""
    value = _held(raw)
    if value is None:
        return None
    parts: list[bytes] = list(value.tensor.string_val)
    return "\n".join(part.decode("utf-8", "replace") for part in parts)


def hparams_of(raw: bytes) -> Iterator[tuple[str, object, str]]:
    """Facts (key, value, family) of one value of the hparams plugin."""
    value = _held(raw)
    content: bytes = b"" if value is None else value.metadata.plugin_data.content
    data = _message("tensorboard.plugins.hparams.plugin_data_pb2", "HParamsPluginData", content)
    if data is None:
        return
    start: Any = data.session_start_info.hparams
    for name in sorted(cast("dict[str, Any]", start)):
        kind: str | None = start[name].WhichOneof("kind")
        if kind in {"number_value", "string_value", "bool_value"}:
            yield name, getattr(start[name], str(kind)), "config"
    # writers mark success when they start, so only a failure says something
    if data.session_end_info.status == _FAILURE:
        yield "hparams.session_end", "failure", "exit"


def config_of(tag: str, text: str) -> Iterator[tuple[str, object, str]]:
    """Facts of a text that is one JSON object or a table of two columns, its keys below the tag; nothing for another.

    CleanRL and scripts after it write the arguments as Markdown: `|param|value|`, `|-|-|`, `|total_timesteps|500000|`.
    """
    data = (
        object_of(text.encode("utf-8", "replace"))
        if text.lstrip().startswith("{")
        else dict(_ROW.findall(text.partition(_RULED)[2]))
    )
    for key, value in (data or {}).items():
        yield f"{tag.removesuffix('/text_summary')}.{key}", value, "config"
