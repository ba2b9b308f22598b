"""Many events of a snapshot at once: where the bytes fit the learned template, they go to columns without an opcode.

A pickler writes all events of a recording alike: the keys are references into the memo, in one order. From an event
that was read opcode by opcode follows a regular expression with the keys as literals and the values as groups.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, cast

from msgspec import Struct

from forensics.formats.snapshot._columns import NONE, EventColumns
from forensics.formats.snapshot._stacks import StackBook, StackRef, is_frame
from forensics.io.pickle.machine import Machine

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


#: Bytes that one pattern is run over; a pickler closes its frames at 64 KiB.
WINDOW = 1 << 16
_CACHE = 1 << 18
_LAYOUTS = 8
_I63 = 1 << 63
_EMPTY = StackRef(0)


class _OtherwiseError(Exception):
    """A value is not what the template expects; the events are read opcode by opcode instead."""


class FastReader:
    """The template in use, and what its groups were found to mean."""

    def __init__(self, columns: EventColumns, stacks: StackBook, window_bytes: int = WINDOW) -> None:
        """Start without a template; one pattern is run over `window_bytes` at once."""
        self.window_bytes = window_bytes
        self.columns = columns
        self.stacks = stacks
        self.template: Template | None = None
        self.learned: dict[tuple[str, ...], Template | None] = {}
        self.runs: dict[bytes, StackRef] = {b"": _EMPTY}
        self.texts: dict[bytes, int] = {}
        self.numbers: dict[bytes, int] = {}

    def learn_from(self, event: Mapping[str, Any], memo: list[Any]) -> None:
        """Take the layout of an event that was read opcode by opcode; a few layouts are kept."""
        keys = tuple(event)
        if keys not in self.learned and len(self.learned) < _LAYOUTS:
            self.learned[keys] = learn(event, memo)
        self.template = self.learned.get(keys) or self.template

    def advance(self, m: Machine, device: int) -> bool:
        """Read events from one byte before `m.p` on; false when the first is none that the template knows."""
        template = self.template
        if template is None:
            return False
        start, end = m.p - 1, min(m.p - 1 + self.window_bytes, m.size)
        rows = template.pattern.findall(m.buf, start, end)
        rest = rows[-1][-1] if rows else b""
        if rest:
            rows.pop()
        if not rows:
            return False
        before = len(m.memo)
        try:
            self._take(m, template, list(zip(*rows, strict=True)), device)
        except _OtherwiseError:
            del m.memo[before:]
            self.learned = {keys: None if one is template else one for keys, one in self.learned.items()}
            self.template = None
            return False
        m.p = end - len(rest)
        return True

    def _take(self, m: Machine, template: Template, groups: list[Sequence[bytes]], device: int) -> None:
        """Turn groups into columns; nothing is written before all of them are understood."""
        count = len(groups[0])
        ints = {f.name: self._ints(groups[f.group]) for f in template.fields if f.kind == "int"}
        texts = {f.name: self._texts(m, groups[f.group]) for f in template.fields if f.kind == "text"}
        pools, stacks = self._memoized(m, template, groups, count)
        none, zero = array("i", [NONE]) * count, array("q", [0]) * count
        unknown = array("q", [NONE]) * count
        time = ints.get("time_us", unknown)
        if time is not unknown and max(time) >= _I63 // 1000:
            raise _OtherwiseError
        c = self.columns
        c.device.extend(array("i", [device]) * count)
        c.action.extend(texts["action"])
        c.compile_context.extend(texts.get("compile_context", none))
        c.user_metadata.extend(texts.get("user_metadata", none))
        c.size.extend(ints["size"])
        c.time.extend(time)
        c.free.extend(ints.get("device_free", unknown))
        c.addr.frombytes(ints.get("addr", zero).tobytes())
        c.stream.frombytes(ints.get("stream", zero).tobytes())
        c.pool.extend(pools)
        c.stack.extend(stacks)
        if len(c) >= c.batch_rows:
            c.flush()

    def _ints(self, column: Sequence[bytes]) -> array[int]:
        """Integers of 64 bits; when all are spelled equally long, eight strided copies decode them."""
        count, width = len(column), len(column[0])
        head = column[0][:2]
        joined = b"".join(column)
        found = array("q")
        if head[0] == 0x8A and 3 <= width <= 10 and len(joined) == count * width:
            same = joined[::width] == head[:1] * count and joined[1::width] == head[1:] * count
            if same and max(joined[width - 1 :: width]) < 0x80:
                out = bytearray(8 * count)
                for k in range(width - 2):
                    out[k::8] = joined[2 + k :: width]
                found.frombytes(bytes(out))
                return found
        known = self.numbers
        if len(known) > _CACHE:
            known.clear()
        for one in set(column) - known.keys():
            number = number_of(one)
            if not 0 <= number < _I63:
                raise _OtherwiseError
            known[one] = number
        found.extend(map(known.__getitem__, column))
        return found

    def _texts(self, m: Machine, column: Sequence[bytes]) -> array[int]:
        known = self.texts
        for one in set(column) - known.keys():
            place = place_of(one)
            text = m.memo[place] if place < len(m.memo) else None
            if text.__class__ is not str:
                raise _OtherwiseError
            known[one] = self.columns.text(str(text))
        return array("i", map(known.__getitem__, column))

    def _memoized(
        self, m: Machine, template: Template, groups: list[Sequence[bytes]], count: int
    ) -> tuple[array[int], array[int]]:
        """Pools and stacks, with the memo written as the pickler counted: the event, its pool, its frames."""
        pool, frames = template.field("pool_id"), template.field("frames")
        if pool is not None:
            return self._with_pools(m, groups, template, count)
        none = array("i", [NONE]) * count
        if frames is None:
            m.memo.extend(repeat(None, count))
            return none, none
        stacks = array("i")
        memo, runs, stack = m.memo, self.runs, stacks.append
        for run, ref in zip(groups[frames.group], groups[frames.group + 1], strict=True):
            memo.append(None)
            if ref:
                stack(self._fetched(memo, ref))
            else:
                found = runs.get(run) or self._first(memo, run)
                memo.append(found)
                stack(found.stack)
        return none, stacks

    def _with_pools(
        self, m: Machine, groups: list[Sequence[bytes]], template: Template, count: int
    ) -> tuple[array[int], array[int]]:
        pools, stacks = array("i", [NONE]) * count, array("i", [NONE]) * count
        memo = m.memo
        kinds = [(f.kind, f.group) for f in template.fields if f.kind in ("pool", "frames")]
        for i in range(count):
            memo.append(None)
            for kind, at in kinds:
                if kind == "frames":
                    ref = groups[at + 1][i]
                    found = None if ref else self.runs.get(groups[at][i]) or self._first(memo, groups[at][i])
                    stacks[i] = self._fetched(memo, ref) if found is None else found.stack
                else:
                    ref = groups[at + 2][i]
                    found = None if ref else (number_of(groups[at][i]), number_of(groups[at + 1][i]))
                    pools[i] = self._pool(memo, ref) if found is None else self.columns.pool_of(found)
                if found is not None:
                    memo.append(found)
        return pools, stacks

    def _pool(self, memo: list[Any], ref: bytes) -> int:
        place = place_of(ref)
        value = memo[place] if place < len(memo) else None
        if value.__class__ is not tuple:
            raise _OtherwiseError
        return self.columns.pool_of(value)

    def _fetched(self, memo: list[Any], ref: bytes) -> int:
        place = place_of(ref)
        value: object = memo[place] if place < len(memo) else None
        if isinstance(value, StackRef):
            return value.stack
        if not isinstance(value, list):
            raise _OtherwiseError
        found = memo[place] = StackRef(self.stacks.number(cast("list[object]", value)))
        return found.stack

    def _first(self, memo: list[Any], run: bytes) -> StackRef:
        """Read a list of frames that is met for the first time, `(` GET… `e` or GET `a`, and keep it by its bytes."""
        found = frames_in(memo, run[1:-1] if run[0] == 0x28 else run[:-1])
        if found is None:
            raise _OtherwiseError
        ref = self.runs[run] = StackRef(self.stacks.number(found))
        return ref


def frames_in(memo: list[Any], gets: bytes) -> list[Any] | None:
    """Fetch the frames that a run of GET opcodes names; None when one of them is no frame."""
    found, at = list[Any](), 0
    while at < len(gets):
        place = place_of(gets[at : at + 5])
        at += 2 if gets[at] == 0x68 else 5
        if place >= len(memo) or not is_frame(memo[place]):
            return None
        found.append(memo[place])
    return found
