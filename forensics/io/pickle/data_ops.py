"""The opcodes that only build data: one small function each, and a table of 256 in which all others refuse."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from forensics.io.pickle.machine import Machine

Op = Callable[[Machine], None]

_SCALARS = (int, str, float, bool, type(None))
_NAMES = {
    0x63: "GLOBAL", 0x93: "STACK_GLOBAL", 0x52: "REDUCE", 0x62: "BUILD", 0x69: "INST", 0x6F: "OBJ", 0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x50: "PERSID", 0x51: "BINPERSID", 0x8B: "LONG4",
    0x8E: "BINBYTES8", 0x42: "BINBYTES", 0x43: "SHORT_BINBYTES", 0x96: "BYTEARRAY8", 0x97: "NEXT_BUFFER",
    0x8F: "EMPTY_SET", 0x91: "FROZENSET", 0x70: "PUT", 0x67: "GET", 0x30: "POP", 0x31: "POP_MARK", 0x32: "DUP",
}  # fmt: skip
_U1, _I4, _U2, _U4, _U8, _F8 = (struct.Struct(code) for code in ("<B", "<i", "<H", "<I", "<Q", ">d"))


def not_data(m: Machine) -> NoReturn:
    """Refuse an opcode that is no data."""
    op = m.buf[m.p - 1]
    name = _NAMES.get(op)
    m.refuse(f"opcode 0x{op:02x}{f' ({name})' if name else ''} is not plain data")


def proto(m: Machine) -> None:
    """PROTO: protocols 2 to 5."""
    version = m.take(1)[0]
    if not 2 <= version <= 5:
        m.refuse(f"pickle protocol {version} is not supported")


def frame(m: Machine) -> None:
    """FRAME: its length is looked at here, and where the next one begins."""
    (length,) = _U8.unpack(m.take(8))
    if length > m.bounds.frame_bytes:
        m.refuse(f"a frame of {length} bytes")
    m.begin_frame(length)


def stop(m: Machine) -> None:
    """STOP."""
    if len(m.stack) != 1 or m.marks:
        m.refuse("the document ends with an open container")
    m.end_frame(m.p)
    m.done = True


def memoize(m: Machine) -> None:
    """MEMOIZE."""
    m.below()
    m.memo.append(m.stack[-1])


def _put(m: Machine, index: int) -> None:
    m.below()
    if index != len(m.memo):
        m.refuse(f"memo entry {index} is written out of order")
    m.memo.append(m.stack[-1])


def _get(m: Machine, index: int) -> None:
    m.push(m.recall(index))


def mark(m: Machine) -> None:
    """MARK."""
    m.marks.append(len(m.stack))
    if len(m.marks) > m.bounds.depth:
        m.refuse(f"nested deeper than {m.bounds.depth}")


def empty_dict(m: Machine) -> None:
    """EMPTY_DICT."""
    m.count()
    m.push({})


def empty_list(m: Machine) -> None:
    """EMPTY_LIST."""
    m.count()
    m.push([])


def store(m: Machine, where: Any, key: Any, value: Any) -> None:  # noqa: ANN401 - plain data of any kind
    """Put one item into a dict; keys are strings or integers, so that a hash never recurses."""
    if where.__class__ is not dict:
        m.refuse("an item for what is no dict")
    if key.__class__ is not str and key.__class__ is not int:
        m.refuse(f"a dict key that is a {type(key).__name__}")
    where[key] = value


def setitem(m: Machine) -> None:
    """SETITEM."""
    m.below()
    value = m.stack.pop()
    m.below()
    key = m.stack.pop()
    m.below()
    store(m, m.stack[-1], key, value)


def setitems(m: Machine) -> None:
    """SETITEMS."""
    at = m.above_mark()
    stack = m.stack
    if (len(stack) - at) % 2:
        m.refuse("a dict key without a value")
    where = stack[at - 1]
    for i in range(at, len(stack), 2):
        store(m, where, stack[i], stack[i + 1])
    del stack[at:]


def append(m: Machine) -> None:
    """APPEND."""
    m.below()
    value = m.stack.pop()
    m.below()
    if m.stack[-1].__class__ is not list:
        m.refuse("an element for what is no list")
    m.stack[-1].append(value)


def appends(m: Machine) -> None:
    """APPENDS."""
    at = m.above_mark()
    where = m.stack[at - 1]
    if where.__class__ is not list:
        m.refuse("elements for what is no list")
    where.extend(m.stack[at:])
    del m.stack[at:]


def _tuple_of(m: Machine, values: list[Any]) -> None:
    if not all(isinstance(value, _SCALARS) for value in values):
        m.refuse("a tuple of containers")
    m.count()
    m.push(tuple(values))


def _tuple_op(count: int) -> Op:
    def op(m: Machine) -> None:
        values: list[Any] = []
        for _ in range(count):
            m.below()
            values.append(m.stack.pop())
        _tuple_of(m, values[::-1])

    return op


def tuple_from_mark(m: Machine) -> None:
    """TUPLE."""
    at = m.marks.pop() if m.marks else m.refuse("a tuple ends that never began")
    values = m.stack[at:]
    del m.stack[at:]
    _tuple_of(m, values)


def _text(m: Machine, length: int) -> None:
    """Push a string; what is no UTF-8, such as a lone surrogate, stays as a visible escape."""
    if length > m.bounds.string_bytes:
        m.refuse(f"a string of {length} bytes")
    m.count()
    data = m.take(length)
    try:
        m.push(data.decode())
    except UnicodeDecodeError:
        m.damaged_texts += not _is_written(data)
        m.push(data.decode("utf-8", "backslashreplace"))


def _is_written(data: bytes) -> bool:
    """Whether a pickler writes these bytes for a string: UTF-8, and lone surrogates as they are."""
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _long(m: Machine, length: int) -> None:
    if length > m.bounds.integer_bytes:
        m.refuse(f"an integer of {length} bytes")
    m.push(int.from_bytes(m.take(length), "little", signed=True))


def _constant(value: Any) -> Op:  # noqa: ANN401 - True, False, None or nothing in brackets
    return lambda m: m.push(value)


def _of(form: struct.Struct, act: Callable[[Machine, Any], None] = Machine.push) -> Op:
    """An opcode that is followed by a number, which it pushes or acts upon."""
    size, unpack = form.size, form.unpack
    return lambda m: act(m, unpack(m.take(size))[0])


_ALLOWED: dict[int, Op] = {
    0x80: proto, 0x95: frame, 0x2E: stop, 0x94: memoize, 0x71: _of(_U1, _put), 0x72: _of(_U4, _put),
    0x68: _of(_U1, _get), 0x6A: _of(_U4, _get), 0x28: mark, 0x7D: empty_dict, 0x5D: empty_list, 0x29: _constant(()),
    0x73: setitem, 0x75: setitems, 0x61: append, 0x65: appends, 0x85: _tuple_op(1), 0x86: _tuple_op(2),
    0x87: _tuple_op(3), 0x74: tuple_from_mark, 0x8C: _of(_U1, _text), 0x58: _of(_U4, _text), 0x8D: _of(_U8, _text),
    0x8A: _of(_U1, _long), 0x4A: _of(_I4), 0x4B: _of(_U1), 0x4D: _of(_U2), 0x47: _of(_F8),
    0x88: _constant(value=True), 0x89: _constant(value=False), 0x4E: _constant(value=None),
}  # fmt: skip

#: By opcode: what it does; whatever is not data refuses.
DATA_OPS: tuple[Op, ...] = tuple(_ALLOWED.get(op, not_data) for op in range(256))
