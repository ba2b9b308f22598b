"""Error files of torchelastic (`error.json`): the exception that ended one worker, with its stack and its time.

A worker writes one when its main function is recorded; the rank is that of its folder. The agent's file of a whole job
has the same form.
"""

from __future__ import annotations

from typing import cast

from forensics.dialects.events import tracebacks
from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import int64, nanoseconds
from forensics.formats.rows.out import write_row
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import as_object, dumps, loads

_STACK_CHARS = 200_000
_MESSAGE_CHARS = 1000


@ingester("error_file", version=1, sniff=Sniff(glob=("error.json", "*_error.json", "error_*.json")), emits=("events",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one error file; raises `NotMine` when it is no object with a `message`."""
    data = document(opened, limits)
    try:
        found = loads(data)
    except InputError as error:
        if b'"message"' not in data:
            raise NotMine("no message") from error
        out.issue("damaged", error.message)
        settle_document(opened, out, records=0, lost_bytes=len(data))
        return
    message = cast("dict[str, object]", found).get("message") if isinstance(found, dict) else None
    if not isinstance(message, (str, dict)):
        raise NotMine("no message")
    text, stack, seconds = _parts(cast("dict[str, object] | str", message))
    said = next((part.strip() for part in text.splitlines() if part.strip()), "") or _last(stack)
    attrs = {"role": "root", **_exception(said), **_frames(stack)}
    row = {
        "seq": 0,
        "line": 1,
        "byte": 0,
        "t_ns": nanoseconds(seconds),
        "rank": opened.source.rank,
        "level": "error",
        "code": "traceback",
        "text": said[: limits.quote_chars],
        "attrs": dumps(attrs, compact=True).decode(),
    }
    write_row(out, "events", row)
    out.format("torchelastic error file")
    settle_document(opened, out, records=1)


def _parts(message: dict[str, object] | str) -> tuple[str, str, float | None]:
    """Text of the exception, its stack, and unix seconds."""
    if isinstance(message, str):
        return message, "", None
    more = as_object(message.get("extraInfo"))
    stack = more.get("py_callstack")
    seconds = number(more.get("timestamp"))
    text = str(message.get("message", ""))
    return text, stack if isinstance(stack, str) else "", float(s) if (s := int64(seconds)) is not None else None


def _last(stack: str) -> str:
    lines = [line.strip() for line in stack.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _exception(said: str) -> dict[str, str]:
    name, colon, rest = said.partition(":")
    if colon and name.replace(".", "").replace("_", "").isalnum():
        return {"exc": name, "message": rest.strip()[:_MESSAGE_CHARS]}
    return (
        {"exc": said, "message": ""} if said.isidentifier() else {"exc": "Exception", "message": said[:_MESSAGE_CHARS]}
    )


def _frames(stack: str) -> dict[str, str]:
    """Innermost frame, number of frames and first exception of a chain, as for a traceback in a log."""
    head, *lines = stack[:_STACK_CHARS].splitlines() or [""]
    attrs = tracebacks.read(head, lines).attrs() if lines else {}
    return {
        key: attrs[key]
        for key in ("frame", "frames", "root_exc", "root_message", "root_frame", "handling")
        if key in attrs
    }
