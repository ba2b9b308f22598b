"""The contents of a memory snapshot as frozen values; bytes unless the name says otherwise.

A stack is a tuple of frames `file:line function`, innermost first, without frames of the interpreter's own machinery.
"""

from __future__ import annotations

from msgspec import Struct

from forensics.knowledge.libraries import is_library
from forensics.model import Confidence

Stack = tuple[str, ...]


class _OfStack(Struct, frozen=True):
    stack: Stack

    @property
    def site(self) -> str:
        """The innermost frame of the user's own code, or the innermost frame there is."""
        return site_of(self.stack)


class Leak(_OfStack, frozen=True):
    """A line of code whose allocations pile up: live at the end, spread over the recording, growing in proportion.

    `bytes` and `count` are of the allocations that were recorded and not freed. `per_step` is bytes per step, and
    `period` how many steps lie between two of them, where steps could be told (`steps` of them); else None.
    `spread` is the share of tenths of the recording in which a survivor was born, `linearity` the correlation of the
    bytes held with the time. `seq` is the event that made the first survivor.
    """

    bytes: int
    count: int
    per_step: float | None
    period: float | None
    steps: int
    spread: float
    linearity: float
    confidence: Confidence
    seq: int


class Share(_OfStack, frozen=True):
    """Memory of one stack at the peak.

    `category` is parameter, gradient, optimizer, activation, temporary or unknown, with `confidence` in it;
    `before` is whether the memory was there before the recording began.
    """

    bytes: int
    count: int
    category: str
    confidence: Confidence
    before: bool = False


class Pool(Struct, frozen=True):
    """Reserved and active bytes of one memory pool at the end; (0, 0) is the default pool, others are private."""

    pool: tuple[int, int]
    reserved_bytes: int
    allocated_bytes: int


class Growth(_OfStack, frozen=True):
    """Growth of one stack from one snapshot to another; `per_step` when the steps between are known."""

    bytes: int
    count: int
    per_step: float | None = None


class Oom(Struct, frozen=True):
    """The last out-of-memory event of a recording: what was asked for (rounded), and what the device had free.

    `events_after` counts events of the same device behind it, without the mark of the snapshot itself.
    """

    seq: int
    t_ns: int | None
    asked_bytes: int
    free_bytes: int | None
    stack: Stack
    events_after: int


class Snapshot(Struct, frozen=True):
    """One device of one snapshot file.

    `quality` is `exact` (the accounting closes at every event), `wrapped` (so too, but older events were overwritten),
    `state only` (no events), `partial` (the file is cut, so there is no end to count back from) or `inconsistent`;
    `notes` say why, and what else is missing. Bytes are requested bytes where the file has them, at the end of the
    recording; `peak_*` are of the recording. `gap_bytes` is reserved less allocated at the peak.

    `fragmentation` (0..1) is `unreleasable_bytes` over `reserved_bytes`: free memory in segments that some active
    block keeps, which empty_cache cannot give back (segments that are expandable are left out, they unmap pages).
    `scatter` (0..1) is 1 less the largest of these free blocks (`largest_piece_bytes`) over all of them.
    `stacked_events` counts events with a stack.
    `expandable` is the allocator's setting, None when the file does not say.
    """

    source: str
    device: int
    rank: int | None
    quality: str
    notes: tuple[str, ...]
    events: int
    start_allocated_bytes: int
    start_reserved_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    peak_bytes: int
    gap_bytes: int
    unreleasable_bytes: int
    largest_piece_bytes: int
    fragmentation: float
    scatter: float
    expandable: bool | None
    ooms: int
    oom: Oom | None
    stacked_events: int
    steps: int
    end_t_ns: int | None
    leaks: tuple[Leak, ...]
    peak_by_stack: tuple[Share, ...]
    live_by_stack: tuple[Share, ...]
    pools: tuple[Pool, ...]

    @property
    def trusted(self) -> bool:
        """Whether the numbers of the recording may be used: the accounting closes."""
        return self.quality in ("exact", "wrapped")


def site_of(stack: Stack) -> str:
    """The innermost frame that is a Python file outside of libraries; else the innermost frame; `no stack` for none."""
    for frame in stack:
        place = frame.split(" ", 1)[0]
        if ".py:" in place and not is_library(place):
            return frame
    return stack[0] if stack else "no stack"
