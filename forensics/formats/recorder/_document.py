"""The document in a flight-recorder dump: pickled or JSON, whole or cut, as plain dicts and lists.

Of a file that was cut, every entry that is whole is kept: what the reader had built when the bytes ended is put
together from its stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from forensics.errors import InputError, NotMine
from forensics.formats.rows.json_records import places, records_before_damage
from forensics.io.limits import Limits
from forensics.io.pickle import ops as pickle_ops
from forensics.io.tolerant_json import loads

#: Entries of one dump that are read: the ring has 2,000 by default.
MOST_ENTRIES = 100_000
_NAMES = (b"collective_seq_id", b"seq_id", b"pg_config", b"profiling_name", b"pg_status")


@dataclass(frozen=True, slots=True)
class Document:
    """What a dump holds; `damage` says why a part is missing, `good_bytes` is where it was understood to.

    `malformed` counts what stands among the entries and is none, `damaged_texts` strings that are no UTF-8, and
    `misframed` frames of a pickle that are not as long as they say.
    """

    top: Mapping[str, Any]
    entries: list[Mapping[str, Any]]
    form: str
    damage: str = ""
    good_bytes: int = 0
    malformed: int = 0
    damaged_texts: int = 0
    misframed: int = 0


def parse(data: bytes, limits: Limits) -> Document:
    """Read the bytes of one dump.

    Raises:
        NotMine: when they hold none of the names that a dump is made of.
    """
    if not data.strip():
        return Document({}, [], "empty", "the dump is empty")
    if not any(name in data for name in _NAMES):
        raise NotMine("no flight-recorder dump")
    if data.startswith(b"\x80"):
        return _pickled(data)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return _json(data, limits)
    raise NotMine("no flight-recorder dump")


def _pickled(data: bytes) -> Document:
    machine = pickle_ops.Machine(data, pickle_ops.DOCUMENT)
    damage, good = "", len(data)
    try:
        top: object = pickle_ops.run(machine)
    except InputError as error:
        damage, good = error.message, min(machine.p, len(data))
        top = _folded(machine.stack, machine.marks)
    if isinstance(top, dict):
        fields = cast("dict[str, object]", top)
        try:  # entries are read to a fixed depth and charged one by one
            pickle_ops.check(machine, {key: value for key, value in fields.items() if key != "entries"})
        except InputError as error:
            damage, top = damage or error.message, {"entries": fields.get("entries")}
    found = _of(cast("object", top), "pickle", damage, good)
    return replace(found, damaged_texts=machine.damaged_texts, misframed=machine.misframed)


def _folded(stack: list[Any], marks: list[int]) -> Any:  # noqa: ANN401 - plain data of any kind
    """Close the containers that were still open: each list and dict takes the whole values that wait above its mark."""
    values = list(stack)
    for mark in reversed(marks):
        if not 0 < mark <= len(values):
            return None
        below, waiting = values[mark - 1], values[mark:]
        del values[mark:]
        if isinstance(below, list):
            cast("list[Any]", below).extend(waiting)
        elif isinstance(below, dict):
            keys = waiting[0 : len(waiting) // 2 * 2 : 2]
            pairs = zip(keys, waiting[1::2], strict=False)
            cast("dict[Any, Any]", below).update({k: v for k, v in pairs if isinstance(k, str | int)})
        else:
            del values[mark - 1 :]
    return values[0] if values else None


def _json(data: bytes, limits: Limits) -> Document:
    try:
        return _of(loads(data, limits), "json", "", len(data))
    except InputError as error:
        damage = error.message
    inside = places(data, "entries")
    found, good = records_before_damage(data, inside if inside.spans else places(data))
    fields = _fields_before(data, inside.spans[0][0]) if inside.spans else {}
    return _of({**fields, "entries": found}, "json", damage, good)


def _fields_before(data: bytes, begin: int) -> dict[str, Any]:
    """The fields of the document that stand before its entries, such as the groups and their members."""
    head = data[: max(data.rfind(b'"entries"', 0, begin), 0)].rstrip(b" \t\r\n,")
    try:
        found = loads(head + b"}")
    except InputError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _of(top: object, form: str, damage: str, good_bytes: int) -> Document:
    if isinstance(top, list):
        found: object = cast("list[object]", top)
        top = {}
    else:
        found = cast("dict[str, Any]", top).get("entries") if isinstance(top, dict) else None
    if not isinstance(top, dict):
        top = {}
    fields = {str(k): v for k, v in cast("dict[object, Any]", top).items()}
    if "entries" not in fields:
        found = next((one for one in (found, *fields.values()) if _has_entries(one)), found)
    listed = cast("list[Any]", found)[:MOST_ENTRIES] if isinstance(found, list) else []
    whole = [e for e in listed if _is_entry(e)]
    if not damage and not whole and not {"pg_config", "pg_status", "version", "entries"} & fields.keys():
        raise NotMine("no flight-recorder dump")
    if isinstance(found, list) and len(cast("list[Any]", found)) > MOST_ENTRIES and not damage:
        damage = f"more than {MOST_ENTRIES} entries; the rest was not read"
    malformed = len(listed) - len(whole)
    if "entries" in fields and not isinstance(fields["entries"], list):
        malformed = 1
    return Document(fields, whole, form, damage, good_bytes, malformed)


def _has_entries(value: object) -> bool:
    return isinstance(value, list) and any(_is_entry(one) for one in cast("list[object]", value))


def _is_entry(value: object) -> bool:
    """Whether a value is a whole entry: it names an operation and says what became of it."""
    return isinstance(value, dict) and "profiling_name" in value and "state" in value
