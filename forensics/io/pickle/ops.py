"""Pickled data without unpickling: opcodes are read one by one, only opcodes of data are known, nothing is called.

A restricted unpickler is no protection: nested keys end the interpreter, and nine bytes can ask for a terabyte. Here no
name is ever looked up; dict keys are strings or integers, tuples hold scalars, and every size is bounded. `read_plain`
is for small documents. A reader of large ones brings a table of its own opcodes to `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from forensics.io.pickle.data_ops import DATA_OPS, Op
from forensics.io.pickle.machine import Buffer, Machine, PickleBounds, PickleCut

#: Bounds of a small document: a flight recorder of 20,000 entries has a tenth of this.
DOCUMENT = PickleBounds(nodes=2_000_000, depth=32)
_MAGICS = (
    (b"PK\x03\x04", "a zip archive, as torch.save writes it"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
)


def foreign(head: bytes) -> str | None:
    """The reason why the first bytes are no pickle of protocol 2 to 5; None when they may be one."""
    if not head:
        return "an empty file"
    for magic, what in _MAGICS:
        if head.startswith(magic):
            return what
    if head[0] != 0x80:
        return "no pickle of protocol 2 or later"
    return None


def run(m: Machine, ops: Sequence[Op] = DATA_OPS) -> Any:  # noqa: ANN401 - plain data of any kind
    """Read to the end of the document and give it; what was read so far stays in `m` when an error ends it.

    Raises `PickleRefused` when something is no plain data, or above the bounds; `PickleCut` when the bytes end first.
    """
    if (what := foreign(m.buf[:4])) is not None:
        m.refuse(f"this is {what}")
    buf, size = m.buf, m.size
    while not m.done:
        if m.p >= size:
            msg = f"the file ends at byte {size}, before the document does"
            raise PickleCut(msg, help="forensics formats")
        op = buf[m.p]
        m.p += 1
        ops[op](m)
    return m.stack[0]


def read_plain(data: Buffer, bounds: PickleBounds = DOCUMENT) -> Any:  # noqa: ANN401 - plain data of any kind
    """Give a small document of dicts, lists, tuples of scalars, strings, numbers, booleans and None.

    A walk over the result is bounded too: what is shared counts each time it is met, and a cycle is refused. Raises
    `PickleRefused` when something is no plain data, or above the bounds; `PickleCut` when the bytes end first.
    """
    m = Machine(data, bounds)
    document = run(m)
    check(m, document)
    return document


def check(m: Machine, document: object) -> None:
    """Refuse a value whose walk the bounds of `m` do not allow: what is shared counts each time it is met.

    Raises `PickleRefused` when it is nested too deep, holds itself, or shares too much.
    """
    waiting: list[tuple[object, int]] = [(document, 0)] if isinstance(document, dict | list) else []
    met = 0
    while waiting:
        value, depth = waiting.pop()
        inner = list(cast("dict[object, object]", value).values()) if isinstance(value, dict) else value
        inner = cast("list[object]", inner)
        met += len(inner)
        if depth >= m.bounds.depth:
            m.refuse(f"nested deeper than {m.bounds.depth}, or without an end,")
        if met > m.bounds.nodes:
            m.refuse(f"more than {m.bounds.nodes} values, many of them shared,")
        waiting += [(one, depth + 1) for one in inner if one.__class__ is dict or one.__class__ is list]
