"""One block of decoded events on its way to the sink: durations, memory and counters to rows, the rest to counts."""

from __future__ import annotations

import contextlib
from collections import Counter as Tally
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import cast

import numpy as np
from msgspec import Struct, field

from forensics.formats.rows.out import Out
from forensics.formats.trace._device import collective_attrs, wanted
from forensics.formats.trace._event import COUNTER, REFUSED, Args, Counted, Event, decoded_exactly, series_in
from forensics.formats.trace._header import Clock
from forensics.formats.trace._marks import Marks, counter_rows, duration_of, has_memory, memory_rows
from forensics.formats.trace._rows import Coded, attrs, spans
from forensics.formats.trace._times import NS_FROM, Bools, Ints, floats, nanoseconds, nanoseconds_exactly, rounds
from forensics.knowledge.vocabulary import keys_of
from forensics.values import replace

_DEVICE_WORK = frozenset((*keys_of("work_of_a_gpu"), *keys_of("work_of_a_gpu_once")))
#: A stamp from here on is unix time (2001 and later): nothing is added to it.
_UNIX_FROM_NS = 10**18
_ph, _cat, _ts, _dur = map(attrgetter, ("ph", "cat", "ts", "dur"))
Raw = Callable[[], bytes] | None
#: Durations that make one frame.
FRAME_ROWS = 8_192
NO_TIME = "durations without a time that can be read"
CLIPPED = "device work that the profiler gave neither a time nor a duration"
NEGATIVE = "durations below zero, taken as zero"
UNMEASURED = "durations of unknown length"


class _Block(Struct, frozen=True):
    """Events with their order in the file and their start; `plain`: floats hold their durations exactly."""

    events: list[Event]
    order: Ints
    start_ns: Ints
    known: Bools
    plain: bool

    def times(self) -> Ints:
        """Starts, 0 where they are not known."""
        return np.where(self.known, self.start_ns, 0)

    def of(self, chosen: Ints | None) -> _Block:
        """The events at these positions, or all in a list of its own."""
        if chosen is None:
            return replace(self, events=self.events.copy())
        events = [self.events[at] for at in cast("list[int]", chosen.tolist())]
        return _Block(events, self.order[chosen], self.start_ns[chosen], self.known[chosen], plain=self.plain)


class Batches(Struct):
    """Counts of one trace so far; `add` takes its events block by block.

    `scale`: nanoseconds of one unit of a stamp, 1 where a writer printed nanoseconds; `absolute`: stamps are unix time;
    `device_only`: what does not tell of the device's time is counted only (but the first duration, where else no row
    would tell that there is a trace).
    """

    out: Out
    clock: Clock
    rank: int | None
    device_only: bool = False
    frame_rows: int = FRAME_ROWS
    marks: Marks = field(default_factory=Marks)
    events: int = 0
    rows: int = 0
    points: int = 0
    scale: int = 0
    absolute: bool = False
    problems: Tally[str] = field(default_factory=Tally[str])
    _held: list[tuple[_Block, Ints, Bools]] = field(default_factory=list[tuple[_Block, Ints, Bools]])

    def add(self, events: list[Event], raw: Raw) -> None:
        """Take one block; `raw()` are its bytes, where it decoded as it stands."""
        block = self._block(events, np.arange(len(events), dtype=np.int64) + self.events, raw)
        self.events += len(events)
        phases = Coded.of(map(_ph, block.events))
        lasting = np.array([ph == "X" for ph in phases.keys], np.bool_)[phases.rows]
        if lasting.all():
            self._durations(block)
            return
        self._durations(block.of(np.flatnonzero(lasting)))
        self._others(block.of(np.flatnonzero(~lasting)), raw)

    def _block(self, events: list[Event], order: Ints, raw: Raw) -> _Block:
        """The events with their order and times; exact times where floats lost digits."""
        us = floats(map(_ts, events), len(events)) if raw else None
        if us is not None and raw and rounds(us, raw):
            us = None
            with contextlib.suppress(*REFUSED):
                events = decoded_exactly(raw())
        first = next((one.ts for one in events if one.ts), None) if not self.scale else None
        if first is not None:
            self.scale = 1 if first >= NS_FROM else 1000
            self.absolute = first * self.scale >= _UNIX_FROM_NS
        plain = us is not None and self.scale != 1
        scale = self.scale or 1000
        start, known = nanoseconds(us) if us is not None and plain else nanoseconds_exactly(map(_ts, events), scale)
        base = 0 if self.absolute else self.clock.base_ns or 0
        return _Block(events, order, start + base, known, plain=plain)

    def _lengths(self, block: _Block) -> tuple[Ints, Bools]:
        values = map(_dur, block.events)
        if block.plain:
            return nanoseconds(floats(values, len(block.events)))
        return nanoseconds_exactly(values, self.scale or 1000)

    def _durations(self, block: _Block) -> None:
        if self.device_only:
            block = self._of_device(block)
        if not block.events:
            return
        duration, measured = self._lengths(block)
        lost = np.flatnonzero(~block.known | (measured & (duration == 0)))
        dropped = [at for at in lost.tolist() if not block.known[at] or self._is_clipped(block.events[at])]
        for at in dropped:
            self.problems[CLIPPED if block.known[at] else NO_TIME] += 1
            self.marks.leave("X", block.events[at].cat)
        if dropped:
            keep = np.delete(np.arange(len(block.events)), dropped)
            block, duration, measured = block.of(keep), duration[keep], measured[keep]
        if (negative := measured & (duration < 0)).any():
            self.problems[NEGATIVE] += int(negative.sum())
            duration = np.maximum(duration, 0)
        self.problems[UNMEASURED] += int((~measured).sum())
        self._write(block, duration, measured)

    def _of_device(self, block: _Block) -> _Block:
        keep = wanted(block.events)
        if block.events and not self.rows and not keep.any():
            keep[0] = True
        if keep.all():
            return block
        for at in np.flatnonzero(~keep).tolist():
            self.marks.leave("X", block.events[at].cat)
        return block.of(np.flatnonzero(keep))

    @staticmethod
    def _is_clipped(one: Event) -> bool:
        return not one.ts and one.cat in _DEVICE_WORK

    def _write(self, block: _Block, duration: Ints, measured: Bools) -> None:
        """Hold the rows of a block until there are enough for a frame: a frame costs as much as 2,000 rows."""
        if not block.events:
            return
        self.rows += len(block.events)
        self._held.append((block.of(None), duration, measured))
        if sum(len(one.events) for one, _, _ in self._held) >= self.frame_rows:
            self.flush()

    def flush(self) -> None:
        """Write the rows that are held."""
        if self._held:
            order = np.concatenate([one.order for one, *_ in self._held])
            start = np.concatenate([one.start_ns for one, *_ in self._held])
            duration = np.concatenate([one for _, one, _ in self._held])
            measured = np.concatenate([one for _, _, one in self._held])
            events = [event for one, *_ in self._held for event in one.events]
            texts = collective_attrs if self.device_only else attrs
            self.out.rows("spans", spans(events, order, (start, duration, measured), self.rank, texts))
            self._held.clear()

    def _others(self, block: _Block, raw: Raw) -> None:
        phases, categories = Coded.of(map(_ph, block.events)), Coded.of(map(_cat, block.events))
        counters = partial(self._counters, raw=raw)
        uses: dict[str, Callable[[_Block], None]] = {"BE": self._pairs, "iIR": self._instants, "C": counters}
        left = np.ones(len(block.events), np.bool_)
        if self.device_only:
            del uses["iIR"], uses["C"]
        for taken, use in uses.items():
            chosen = np.array([ph != "" and ph in taken for ph in phases.keys], np.bool_)[phases.rows]
            if chosen.any():
                use(block.of(np.flatnonzero(chosen)))
                left &= ~chosen
        width = len(categories.keys)
        counts = np.bincount(phases.rows[left].astype(np.int64) * width + categories.rows[left])
        for key in np.flatnonzero(counts).tolist():
            self.marks.leave(phases.keys[key // width], categories.keys[key % width], int(counts[key]))

    def _pairs(self, block: _Block) -> None:
        ends: list[int] = []
        whole: list[Event] = []
        begins: list[int] = []
        for at, start_ns, begin, end in self.marks.joined(block.events, block.start_ns.tolist(), block.known.tolist()):
            ends.append(at)
            begins.append(start_ns)
            whole.append(duration_of(begin, end))
        keep = np.array(ends, np.int64)
        start = np.array(begins, np.int64)
        length = np.maximum(block.start_ns[keep] - start, 0)
        known = np.ones(len(keep), np.bool_)
        self._write(_Block(whole, block.order[keep], start, known, plain=False), length, known)
        self.rows += len(keep)  # a pair is two events

    def _instants(self, block: _Block) -> None:
        found: list[int] = []
        for at, one in enumerate(block.events):
            if one.args is not None and has_memory(one.args):
                found.append(at)
            else:
                self.marks.leave(one.ph, one.cat)
        if found:
            chosen = block.of(np.array(found, np.int64))
            args = [cast("Args", one.args) for one in chosen.events]
            self.out.rows("metrics", memory_rows(args, chosen.order, chosen.times(), self.rank))
            self.points += len(found)

    def _counters(self, block: _Block, raw: Raw) -> None:
        series = series_in(raw()) if raw else [cast("Counted", one).series for one in block.events]
        if len(series) != len(block.events):
            for one in block.events:
                self.marks.leave(COUNTER, one.cat)
            return
        self.out.rows("metrics", counter_rows(block.events, series, block.order, block.times(), self.rank))
        self.points += len(series)
