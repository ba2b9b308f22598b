"""A pickled memory snapshot, opcode by opcode: events become columns as they go, the rest stays as plain data.

Above the opcodes that build data there are a few of its own: an event that is complete leaves the stack for the
columns, a list of frames shrinks to the number of its stack, and where the bytes fit the learned template hundreds of
events are read at once.
"""

from __future__ import annotations

import re
from mmap import MADV_DONTNEED, PAGESIZE, mmap
from typing import Any, cast

from msgspec import Struct

from forensics.errors import InputError
from forensics.formats.rows.out import Out
from forensics.formats.snapshot._columns import BATCH, EventColumns
from forensics.formats.snapshot._fast import WINDOW, FastReader, frames_in
from forensics.formats.snapshot._stacks import StackBook, StackRef
from forensics.io.budget import Budget
from forensics.io.limits import DEFAULT, Limits
from forensics.io.pickle.data_ops import DATA_OPS, Op
from forensics.io.pickle.machine import Buffer, Machine, PickleBounds
from forensics.io.pickle.ops import run
from forensics.patterns import lazily

#: Stands on the stack for an event that went to the columns.
_TAKEN = object()
_GET_RUN = lazily(rb"(?:h.|j.{4})++e", re.DOTALL)
_APPEND = b"a"
_LOOK_BACK = 4096
_DROP_BYTES = 4 << 20


class _Reading(Struct):
    """What the opcodes of a snapshot keep: the columns, the stacks, the template, and where memory was given back."""

    columns: EventColumns
    stacks: StackBook
    fast: FastReader
    dropped: int = 0


class Streamed(Struct, frozen=True):
    """What was read: the plain rest (`segments`, settings, annotations), and why reading stopped before the end."""

    rest: Any
    stacks: StackBook
    columns: EventColumns
    end: int
    error: InputError | None
    flaws: tuple[tuple[str, str, int], ...] = ()


def stream(
    buf: Buffer, out: Out, budget: Budget, bounds: PickleBounds | None = None, limits: Limits = DEFAULT
) -> Streamed:
    """Read a snapshot; its events go to `out` in batches, and what a damaged file still had is kept."""
    stacks = StackBook(budget)
    columns = EventColumns(out, stacks, min(BATCH, limits.batch_rows))
    fast = FastReader(columns, stacks, min(WINDOW, limits.block_bytes))
    m = Machine(buf, bounds or PickleBounds(), _Reading(columns, stacks, fast))
    error = None
    try:
        run(m, _OPS)
    except InputError as why:
        error = why
    end = m.p if m.done else max(m.p - 1, 0)
    return Streamed(_document(m), stacks, columns, end, error, m.flaws)


def _document(m: Machine) -> Any:  # noqa: ANN401 - plain data of any kind
    """The document, or as much of it as is there when its end is missing: whole values only."""
    if m.done or not m.stack:
        return m.stack[0] if m.stack else None
    top = m.stack[0]
    if top.__class__ is list:
        top.extend(_whole(m, 1))
    elif top.__class__ is dict:
        for at in range(1, len(m.stack) - 1, 2):
            key, value = m.stack[at], m.stack[at + 1]
            if key.__class__ is not str:
                break
            top[key] = value
            if at + 2 in m.marks and value.__class__ is list:
                value.extend(_whole(m, at + 2))
                break
    return top


def _whole(m: Machine, mark: int) -> list[Any]:
    """Elements that were read whole behind a mark: those before the next container that is still open."""
    later = [one for one in m.marks if one > mark]
    end = min(later) - 1 if later else len(m.stack)
    return [one for one in m.stack[mark:end] if one.__class__ is dict]


def _place(m: Machine) -> int | None:
    """The device whose events the innermost list holds; None when that list is none of `device_traces`."""
    stack, marks = m.stack, m.marks
    trace = marks[-1] - 1 if len(stack) == marks[-1] else len(stack) - 1
    if trace < 2 or stack[trace].__class__ is not list:
        return None
    outer = next((mark for mark in reversed(marks) if mark <= trace), 0)
    if outer and stack[outer - 1].__class__ is list:
        traces, device = outer - 1, trace - outer
    else:
        traces, device = trace - 1, 0
    if traces < 1 or stack[traces].__class__ is not list or stack[traces - 1] != "device_traces":
        return None
    return len(stack[traces]) + device


def _empty_dict(m: Machine) -> None:
    """EMPTY_DICT: where an event may begin, hundreds are read by the template."""
    if m.stack and m.stack[-1] is _TAKEN:
        m.stack.pop()
    if m.marks and m.extra.fast.template is not None and (device := _place(m)) is not None:
        read: _Reading = m.extra
        if read.fast.advance(m, device):
            if m.p - read.dropped > _DROP_BYTES:
                _give_back(m, read)
            if m.buf[m.p : m.p + 1] == _APPEND:  # a list of one event: the opcode takes one value off
                m.push(_TAKEN)
            return
    DATA_OPS[0x7D](m)


def _give_back(m: Machine, read: _Reading) -> None:
    """Let go of the pages of a mapped file that were read, so that its size does not count as our memory."""
    if isinstance(m.buf, mmap):
        start, end = read.dropped // PAGESIZE * PAGESIZE, m.p // PAGESIZE * PAGESIZE
        m.buf.madvise(MADV_DONTNEED, start, end - start)
    read.dropped = m.p


def _mark(m: Machine) -> None:
    """MARK: a list that is filled with frames alone shrinks to the number of its stack."""
    if m.stack and (top := m.stack[-1]).__class__ is list and not top:
        match = _GET_RUN.match(m.buf, m.p, m.p + (1 << 14))
        if match is not None:
            read: _Reading = m.extra
            run_of = b"(" + match.group()
            ref = read.fast.runs.get(run_of)
            if ref is None and (frames := frames_in(m.memo, run_of[1:-1])):
                ref = read.fast.runs[run_of] = StackRef(read.stacks.number(frames))
            if ref is not None:
                _replace(m, top, ref)
                m.p = match.end()
                return
    DATA_OPS[0x28](m)


def _replace(m: Machine, old: object, new: object) -> None:
    """Put `new` where `old` is, on the stack and among the last entries of the memo."""
    m.stack[-1] = new
    memo = m.memo
    first = max(len(memo) - _LOOK_BACK, 0)
    at = next((i for i in range(len(memo) - 1, first - 1, -1) if memo[i] is old), -1)
    if at >= 0:
        memo[at] = new
    m.extra.stacks.budget.charge((len(memo) - max(at, first)) // 2)


def _setitems(m: Machine) -> None:
    """SETITEMS: a complete event goes to the columns, at once when its list was opened with a mark."""
    DATA_OPS[0x75](m)
    _maybe_event(m)


def _setitem(m: Machine) -> None:
    """SETITEM."""
    DATA_OPS[0x73](m)
    _maybe_event(m)


def _maybe_event(m: Machine) -> None:
    event = m.stack[-1]
    if "action" in event and len(m.stack) > 2 and m.stack[-2].__class__ is list and m.marks:
        m.stack.pop()
        device = _place(m)
        m.stack.append(event)
        if device is not None:
            _emit(m, event, device)


def _emit(m: Machine, event: dict[str, Any], device: int) -> None:
    read: _Reading = m.extra
    frames = event.get("frames")
    if frames.__class__ is list and frames:
        ref = StackRef(read.stacks.number(cast("list[Any]", frames)))
        event["frames"] = ref
        m.stack.append(frames)
        _replace(m, frames, ref)
        m.stack.pop()
    read.fast.learn_from(event, m.memo)
    read.columns.add(event, device)
    m.nodes -= 1
    _replace(m, event, _TAKEN)
    event.clear()


def _appends(m: Machine) -> None:
    """APPENDS: events that went to the columns are left out."""
    at = m.above_mark()
    where = m.stack[at - 1]
    if where.__class__ is StackRef:
        _extend_stack(m, where, m.stack[at:], at)
        return
    m.marks.append(at)
    if m.stack[-1] is _TAKEN:
        m.stack.pop()
    DATA_OPS[0x65](m)


def _append(m: Machine) -> None:
    """APPEND."""
    m.below()
    value = m.stack[-1]
    if value is _TAKEN:
        m.stack.pop()
        return
    if len(m.stack) > 1 and m.stack[-2].__class__ is StackRef:
        where = m.stack[-2]
        _extend_stack(m, where, [value], len(m.stack) - 1)
        return
    DATA_OPS[0x61](m)


def _extend_stack(m: Machine, where: StackRef, more: list[Any], at: int) -> None:
    """A stack that did not fit in one batch of the pickler goes on: the frames behind it make it another stack."""
    stacks: StackBook = m.extra.stacks
    ref = StackRef(stacks.joined(where.stack, stacks.number(more)))
    del m.stack[at:]
    _replace(m, where, ref)


_OWN: dict[int, Op] = {
    0x7D: _empty_dict, 0x28: _mark, 0x75: _setitems, 0x73: _setitem, 0x65: _appends, 0x61: _append,
}  # fmt: skip
_OPS: tuple[Op, ...] = tuple(_OWN.get(op, known) for op, known in enumerate(DATA_OPS))
