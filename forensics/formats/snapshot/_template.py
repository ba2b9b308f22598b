"""The byte layout of a snapshot's events, learned from one of them: one pattern then reads hundreds at once.

A pickler writes all events of a recording alike: the keys are references into the memo, in one order. From an event
that was read opcode by opcode follows a regular expression with the keys as literals and the values as groups.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_REF = rb"(?:h.|j.{4})"
_INT = rb"(?:K.|M..|J.{4}|\x8a(?:\x06.{6}|\x07.{7}|\x05.{5}|\x08.{8}|\x09.{9}|\x01.|\x02..|\x03...|\x04.{4}|\x00))"
_WIDTHS = {"int": 1, "text": 1, "pool": 3, "frames": 2}


class Field(Struct, frozen=True):
    """One key of an event: its kind (`int`, `text`, `pool` or `frames`) and its first group."""

    name: str
    kind: str
    group: int


class Template(Struct, frozen=True):
    """A pattern for one event or, as its last group, whatever is none; with the fields in order."""

    pattern: re.Pattern[bytes]
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """Give a field by its name."""
        return next((one for one in self.fields if one.name == name), None)


def learn(event: Mapping[str, Any], memo: list[Any]) -> Template | None:
    """Derive the layout of events like `event`; None when it has a value that no group can say."""
    wanted = {id(key) for key in event}
    places = {id(one): i for i, one in enumerate(memo) if id(one) in wanted}
    if len(places) < len(wanted) or "action" not in event or "size" not in event:
        return None
    literals = [re.escape(reference(places[id(key)])) for key in event]
    pattern, group, fields = [rb"\}\x94\("], 0, list[Field]()
    for (name, value), literal, after in zip(event.items(), literals, [*literals[1:], b"u"], strict=True):
        kind = _kind(name, value)
        if kind is None:
            return None
        pattern += [literal, _groups(kind, after)]
        fields.append(Field(name, kind, group))
        group += _WIDTHS[kind]
    return Template(re.compile(b"".join(pattern) + b"u|(.+)", re.DOTALL), tuple(fields))


def _kind(name: str, value: object) -> str | None:
    if name == "frames":
        return "frames"
    if value.__class__ is int:
        return "int"
    if value.__class__ is tuple and name == "pool_id":
        return "pool"
    return "text" if value.__class__ is str else None


def _groups(kind: str, after: bytes) -> bytes:
    if kind == "frames":
        run = rb"\((?:h.|j.{4})++e|" + _REF + rb"a|(?=" + after + rb")"
        return rb"(?:\]\x94(" + run + rb")|(" + _REF + rb"))"
    if kind == "pool":
        return rb"(?:(" + _INT + rb")(" + _INT + rb")\x86\x94|(" + _REF + rb"))"
    return b"(" + (_INT if kind == "int" else _REF) + b")"


def reference(index: int) -> bytes:
    """Spell the opcode that fetches a memo entry."""
    return b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)


def place_of(spelled: bytes) -> int:
    """Give the memo entry that an opcode fetches; `spelled` may go on behind it."""
    return spelled[1] if spelled[0] == 0x68 else int.from_bytes(spelled[1:5], "little")


def number_of(spelled: bytes) -> int:
    """Give the integer that an opcode holds."""
    if spelled[0] == 0x8A:
        return int.from_bytes(spelled[2:], "little", signed=True)
    return int.from_bytes(spelled[1:], "little", signed=spelled[0] == 0x4A)
