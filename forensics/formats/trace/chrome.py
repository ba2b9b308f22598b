"""Chrome traces of torch.profiler (Kineto), of every version since 2021, whole, compressed, or cut by a killed job.

Every event of the file is accounted for: durations (and begins joined with their ends) are rows of `spans`, what the
allocator states and counters are rows of `metrics`, the rest is counted by kind in facts `events.left.<ph>.<category>`.
Stamps are exact to the nanosecond. `start_ns` is unix time where the trace states its base, else the fact `clock` says
so. The file is read as a stream: memory does not grow with it beyond the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.text import settle
from forensics.formats.trace._header import described, facts, look_around
from forensics.formats.trace._layout import OPEN
from forensics.io.tolerant_json import dumps

if TYPE_CHECKING:
    from forensics.formats.trace._batch import Batches
    from forensics.formats.trace._stream import Stream

_GLOBS = ("*.json", "*.json.tmp", "*.trace", "*.trace.tmp")
_SNIFF_BYTES = 1 << 20
#: Larger blocks decode no faster and their events take more memory.
_CHUNK_BYTES = 1 << 20
_PHASE = lazily(rb'"ph"\s*:\s*"')
_HEADER = lazily(rb'\A\s*\{\s*"(?:schemaVersion|deviceProperties|displayTimeUnit|distributedInfo)"')
_ROOT = lazily(rb"\A\s*[\[{]")


@ingester("chrome_trace", version=1, sniff=Sniff(glob=_GLOBS), emits=("spans", "metrics", "facts"), device_growth=1 / 4)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one trace; raises `NotMine` when no array of events is in it."""
    head = opened.text_head(_SNIFF_BYTES)
    if not _is_trace(head):
        raise NotMine("no array of trace events")
    from forensics.formats.trace._batch import FRAME_ROWS, Batches  # noqa: PLC0415 - a run without a trace does not pay for it
    from forensics.formats.trace._stream import Stream  # noqa: PLC0415 - same

    block_bytes = min(_CHUNK_BYTES, limits.block_bytes)
    clock = look_around(opened, head, opened.chunks(block_bytes))
    rank = clock.rank if clock.rank is not None else opened.source.rank
    stream = Stream(limits.device_only)
    batches = Batches(out, clock, rank, limits.device_only, min(FRAME_ROWS, limits.batch_rows))
    try:
        for events in stream.events(opened.chunks(block_bytes)):
            batches.add(events, stream.raw if stream.sound else None)
            events.clear()  # before the next block is decoded
    finally:
        batches.flush()
    if not stream.arrays and not _HEADER.search(head):
        raise NotMine("no array of trace events")
    fields, lost_around = described(stream.around, cut=stream.cut)
    _state_losses(stream, batches, out)
    if lost_around:
        out.issue("damaged", f"what stands around the events cannot be read: {lost_around} bytes")
    _write_facts(fields, batches, out)
    is_list = not (stream.around and stream.around[0].strip())
    out.format("chrome trace" + (", a list" if is_list else "") + (", cut" if stream.cut else ""))
    lost_bytes = _on_disk(stream.lost_bytes + lost_around, opened)
    settle(opened, out, records=batches.events, lost_bytes=lost_bytes, reason="damaged events")


def _is_trace(head: bytes) -> bool:
    """Whether an array of events begins here; a header may be longer than what was looked at."""
    if _ROOT.match(head) is None:
        return False
    found = OPEN.search(head)
    if found is None:
        return _HEADER.search(head) is not None
    begin = head[found.end() : found.end() + 8192]
    return b"traceEvents" in found[0] or (_PHASE.search(begin) is not None and begin.lstrip()[:1] == b"{")


def _on_disk(lost_bytes: int, opened: Opened) -> int:
    """Lost bytes of the decoded stream as their share of the bytes on disk."""
    return lost_bytes if not opened.compression else -(-lost_bytes * opened.size_bytes // opened.decoded_bytes)


def _state_losses(stream: Stream, batches: Batches, out: Out) -> None:
    never = batches.marks.close()
    if stream.lost_bytes:
        what = "the last event is not whole" if stream.cut else "events that cannot be read"
        out.issue("damaged", f"{what}: {stream.lost_bytes} bytes", byte=stream.lost_at or 0)
    if stream.cut or not stream.arrays:
        out.issue("cut", f"the trace ends inside of its events; {batches.events} before the cut were read")
    if stream.repaired:
        out.issue("repaired", "events that are no valid JSON were read after a repair", count=stream.repaired)
    if stream.arrays > 1:
        out.issue("two-arrays", "the trace has more than one array of events; all were read", count=stream.arrays)
    for message, count in batches.problems.items():
        if count:
            out.issue("trace-times", message, count=count)
    if never:
        out.issue("never-ended", "durations that began and never ended, as when the job was killed", count=never)
    if batches.marks.unmatched:
        out.issue("never-began", "ends of durations that never began", count=batches.marks.unmatched)
    for (ph, cat), count in batches.marks.unknown().items():
        out.issue("event-kind", f"events of an unknown kind (ph {ph!r}, category {cat!r})", count=count)


def _write_facts(fields: Mapping[str, object], batches: Batches, out: Out) -> None:
    rows = facts(fields)
    clock = "unix" if batches.absolute or batches.clock.base_ns is not None else "own"
    counts = {"events": batches.events, "events.spans": batches.rows, "events.metrics": batches.points}
    rows += [(key, str(count)) for key, count in counts.items()]
    for (ph, cat), count in sorted(batches.marks.left.items()):
        rows.append((f"events.left.{ph}.{cat}", str(count)))
    rows.append(("clock", dumps(clock, compact=True).decode()))
    keys, values = zip(*rows, strict=True)
    out.rows("facts", {"key": [f"trace.{key}" for key in keys], "value": values, "family": ["trace"] * len(keys)})
