"""The way through an event file: by stride where the file is periodic, by template where it is not, else one by one.

Every route gives the same points; each takes what it understands from where the last one stopped.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Struct, field

from forensics.formats.tfevents._points import Batch, Piece, Tags
from forensics.formats.tfevents._stride import plan_of, take
from forensics.formats.tfevents._template import Templates, decode
from forensics.io.limits import Limits
from forensics.io.records import tfrecord

#: what is looked at for a period; doubled while there is none, so that a file without one is not searched often
_PROBE_BYTES = 1 << 14
#: a stride this long has paid for its plan
_WORTH_BYTES = 1 << 16


class Routes(Struct, frozen=True):
    """Which quick routes may be taken; with none, each record is read field by field, which the others must equal."""

    stride: bool = True
    template: bool = True


ALL = Routes()


class Columns(Struct):
    """Points read one by one; `marks` are the record numbers of session starts."""

    tags: list[int] = field(default_factory=list[int])
    seq: list[int] = field(default_factory=list[int])
    byte: list[int] = field(default_factory=list[int])
    step: list[int] = field(default_factory=list[int])
    wall: list[float] = field(default_factory=list[float])
    value: list[float] = field(default_factory=list[float])
    marks: list[int] = field(default_factory=list[int])

    def add(self, tag: int, where: tuple[int, int], when: tuple[int, float], value: float) -> None:
        """Add a point of the record `where` (number, byte), `when` (step, unix seconds)."""
        self.tags.append(tag)
        self.seq.append(where[0])
        self.byte.append(where[1])
        self.step.append(when[0])
        self.wall.append(when[1])
        self.value.append(value)


#: Reads a single record into columns, and states what it cannot read.
OneByOne = Callable[[tfrecord.Record, Columns], None]


class Read(Struct, frozen=True):
    """Points in order; `records` of `size_bytes` were read by a quick route, others have been given to `OneByOne`."""

    batch: Batch
    records: int
    size_bytes: int


def walk(
    data: mmap.mmap | bytes, limits: Limits, tags: Tags, one: OneByOne, routes: Routes = ALL
) -> Iterator[Read | tfrecord.Damage]:
    """All points of a file, in order, and its damage; what no quick route understands is given to `one`.

    Memory stays within a few windows, none of them above `limits.block_bytes`.
    """
    probe_bytes, most_bytes = (min(size, limits.block_bytes) for size in (_PROBE_BYTES, tfrecord.WINDOW_BYTES))
    worth_bytes = min(_WORTH_BYTES, limits.block_bytes)
    at = tfrecord.begin(data, limits, probe_bytes)
    templates = Templates(tags)
    while at.at < len(data):
        chain = tfrecord.chain_at(data, at, limits)
        taken = 0
        if routes.stride and len(chain.starts) > 1 and (plan := plan_of(chain, tags)):
            while found := take(data, at.at, at.index, plan, limits.block_bytes):
                at.at, at.index, taken = at.at + found.size_bytes, at.index + found.records, taken + found.size_bytes
                yield Read(found.batch, found.records, found.size_bytes)
                if not found.whole:
                    break
            if taken >= worth_bytes:
                at.window_bytes = probe_bytes
            if taken:
                chain = tfrecord.chain_at(data, at, limits)
        at.window_bytes = min(2 * at.window_bytes, most_bytes)
        if at.at < len(data):
            for item in tfrecord.step(data, chain, at, limits):
                if isinstance(item, tfrecord.Damage):
                    yield item
                else:
                    yield _frames(item, templates, one, routes)


def _frames(frames: tfrecord.Frames, templates: Templates, one: OneByOne, routes: Routes) -> Read:
    count = len(frames.starts)
    pieces, left = decode(frames, templates) if routes.template else ([], list(range(count)))
    columns = Columns()
    slow_bytes = 0
    for k in left:
        record = frames.record(k)
        slow_bytes += record.size_bytes
        one(record, columns)
    total = frames.starts[-1] + frames.lengths[-1] + tfrecord.FRAME_BYTES - frames.starts[0]
    return Read(_merged(pieces, columns, frames), count - len(left), total - slow_bytes)


def _merged(pieces: Sequence[Piece], columns: Columns, frames: tfrecord.Frames) -> Batch:
    """Points of all pieces and of the single records, in the order of the records."""
    starts = np.array(frames.starts, np.int64)
    seq = np.concatenate([*(p.frame + frames.index for p in pieces), np.array(columns.seq, np.int64)])
    byte = np.concatenate([*(starts[p.frame] + frames.byte for p in pieces), np.array(columns.byte, np.int64)])
    # several values of one record come from one piece, or from none, so a stable order keeps theirs
    order = np.argsort(seq, kind="stable")
    seq = seq[order]
    marks: list[int] = np.searchsorted(seq, np.array(columns.marks, np.int64), side="right").tolist()
    return Batch(
        tags=np.concatenate([*(p.tags for p in pieces), np.array(columns.tags, np.int32)])[order],
        seq=seq,
        byte=byte[order],
        step=np.concatenate([*(p.step for p in pieces), np.array(columns.step, np.int64)])[order],
        wall=np.concatenate([*(p.wall for p in pieces), np.array(columns.wall, np.float64)])[order],
        value=np.concatenate([*(p.value for p in pieces), np.array(columns.value, np.float64)])[order],
        marks=marks,
    )
