"""Text in, tables out: one pass of literals over each block, everything else on the lines that hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import polars as pl
from msgspec import Struct, field

from forensics.dialects import _counters, _lines, _times, handover, prefixes
from forensics.dialects._assemble import Memory, Stream, assemble, empty, needs_whole_file
from forensics.dialects._layouts import Layout
from forensics.dialects._match import LEARN_FROM, Batch, How, Learned, Sample, by_layout, claims, matches
from forensics.dialects.clocks import Calendar
from forensics.dialects.events import signatures
from forensics.dialects.handover import COUNTED, Drained
from forensics.dialects.spec import Dialect, Line
from forensics.patterns import lazily

Tables = dict[str, pl.DataFrame]
#: Matches that are held back for a dialect whose steps depend on other lines, and for any other.
HELD_MATCHES, HELD_A_WHILE = 60_000, 16_000


# Metrics lines read as they are in the file, prefix and all, once their layout is known.
#
# The general way takes prefixes off, asks every line of every dialect and looks for timestamps. A line that fits a
# layout *with* its prefix, whose values are all finite, and which can hold no other meaning, needs none of that.
# What does not fit goes the general way, so this too changes speed and never the result.

_DIGITS = lazily(r"[0-9]+")
_MASK = "0"
_RANK = "([0-9]{1,5})"


class Direct(Struct, frozen=True):
    """A layout that begins at the line's begin.

    `plain`: it has no prefix but begins as one may, so a line that has one is not its own. `quiet`: no error signature
    can be in it.
    """

    kind: int
    line: Line
    layout: Layout
    plain: bool
    quiet: bool
    how: How


def learn(dialects: Sequence[Dialect], line: Line, sample: Sample, calendar: Calendar) -> Direct | None:
    """Put the prefix of the sample before its layout; None where a line like it could mean something else besides."""
    if not sample.raw.endswith(sample.text) or "rank" in sample.layout.names:
        return None
    masked = _masked(sample.text)
    others = (other for d in dialects for other in d.lines if other.meaning != "metrics")
    if any(_masked(other.needle) in masked for other in others):
        return None
    prefix = sample.raw[: len(sample.raw) - len(sample.text)]
    if prefixes.split(sample.raw)[0] != prefix:
        return None
    low, high = prefixes.rank_span(sample.raw)
    names, of_tail = sample.layout.names, sample.layout.of_tail
    if high:
        before = _exact(prefix[:low]) + _RANK + _exact(prefix[high:])
        names, of_tail = ("rank", *names), (False, *of_tail)
    else:
        before = _exact(prefix)
    layout = Layout("^" + before + sample.layout.pattern.removeprefix("^"), names, of_tail)
    masked = _masked(sample.raw)
    quiet = not any(_masked(stem) in masked for stem in signatures.literals())
    how = How(calendar, finite=True, times=_times.reader_like(sample.raw, calendar))
    word_first = not sample.layout.pattern.startswith("^(") and prefixes.MAY_BEGIN.match(sample.text) is None
    plain = not prefix and not word_first
    return Direct(sample.kind, line, layout, plain, quiet, how)


def read(direct: Direct, found: pl.DataFrame) -> tuple[Batch | None, pl.DataFrame]:
    """Read the segments (columns seq, line, byte, text) that fit; give the others back."""
    lines, other = found, None
    if direct.plain and (prefixed := found["text"].str.contains(prefixes.MAYBE)).any():
        lines, other = found.filter(~prefixed), found.filter(prefixed)
    no_rank = pl.Series("rank", [None], dtype=pl.Int64).new_from_index(0, lines.height)
    lines = lines.hstack([lines["text"].alias("raw"), no_rank])
    batch, rest = by_layout(direct.kind, direct.line, lines, direct.layout, direct.how)
    rest = rest[found.columns]
    return batch, rest if other is None else pl.concat([rest, other]).sort("seq")


@lru_cache(maxsize=4096)
def _masked(text: str) -> str:
    return _DIGITS.sub(_MASK, text)


def _exact(text: str) -> str:
    """Literal text in which each digit may be another one."""
    return "".join(f"[0-9]{{{len(run)}}}" if run.isdigit() else _lines.literal(run) for run in _runs(text))


def _runs(text: str) -> list[str]:
    return re.findall(r"[0-9]+|[^0-9]+", text)


class _Used(Struct):
    direct: Direct
    lines: int = 0


class _Held(Struct):
    dialect: Dialect
    learned: Learned
    directs: list[_Used] = field(default_factory=list[_Used])
    memory: Memory = field(default_factory=Memory)
    batches: list[Batch] = field(default_factory=list[Batch])
    rows: int = 0

    def keep(self, batches: list[Batch]) -> None:
        """Hold matches until they are assembled."""
        self.batches.extend(batches)
        self.rows += sum(b.meta.height for b in batches)


class Matcher:
    """Several dialects over the blocks of one file, in order; the first that reads a segment's metrics keeps it."""

    def __init__(
        self, dialects: Sequence[Dialect], calendar: Calendar | None = None, *, learn_from: int = LEARN_FROM
    ) -> None:
        """`calendar` is what timestamps leave out; `learn_from` lines of a kind are worth learning a layout."""
        self._held = [_Held(d, Learned(calendar or Calendar(), learn_from)) for d in dialects]
        #: In which order rows were given, where they count restarts.
        self.drained: list[Drained] = []
        self.needles = tuple(dict.fromkeys(line.needle for d in dialects for line in d.lines))
        #: Finds every line that any of the dialects may read; None when one of them has no literal.
        self.pattern = None if "" in self.needles else _lines.alternation(self.needles)

    def take(self, printed: pl.DataFrame) -> tuple[pl.DataFrame, _lines.Ints]:
        """Read the segments (columns seq, line, byte, text as printed) whose layout is known.

        Gives back the others, which `feed` is for, and the `seq` of those in which no error signature can stand.
        """
        quiet = claims([])
        for held in self._held:
            self._learn(held)  # only here: most logs end with their first block
            for used in held.directs:
                if printed.height:
                    batch, printed = read(used.direct, printed)
                    if batch is not None:
                        used.lines += batch.meta.height
                        held.keep([batch])
                        quiet = _lines.union(quiet, claims([batch])) if used.direct.quiet else quiet
            held.directs.sort(key=lambda used: (used.direct.kind, -used.lines))  # the busiest leave the least to others
        return printed, quiet

    def feed(self, found: pl.DataFrame) -> list[Tables]:
        """Match segments (columns seq, line, byte, text, raw, rank); give the rows that are final."""
        claimed = claims([])
        ready: list[Tables] = []
        for number, held in enumerate(self._held):
            lines = _counters.sparse(found) if held.dialect is _counters.COUNTERS else found
            batches = matches(held.dialect, lines, held.learned, claimed)
            if len(self._held) > 1:
                claimed = _lines.union(claimed, claims(batches))
            held.keep(batches)
            if held.batches and held.rows >= (HELD_MATCHES if needs_whole_file(held.dialect) else HELD_A_WHILE):
                ready.append(self._drain(number))
        return ready

    def begin_anew(self) -> None:
        """Forget all rows and restarts; layouts, kinds of lines and the matches before the next ones stay known."""
        self.close()
        self.drained.clear()
        for held in self._held:
            streams = {rank: Stream(kind=stream.kind) for rank, stream in held.memory.streams.items()}
            held.memory = Memory(streams, before=held.memory.before)

    def streams(self) -> tuple[tuple[handover.Stream, ...], ...]:
        """The streams of each dialect that has rows, by rank."""
        return tuple(tuple(_ended(held.memory, rank) for rank in sorted(held.memory.starts)) for held in self._held)

    def _learn(self, held: _Held) -> None:
        every = [other.dialect for other in self._held]
        for sample in held.learned.fresh:
            line = held.dialect.lines[sample.kind]
            direct = learn(every, line, sample, held.learned.calendar)
            if direct is not None:
                held.directs.append(_Used(direct))
        held.learned.fresh.clear()

    def close(self) -> list[Tables]:
        """Give the rows that were held back."""
        return [self._drain(number) for number, held in enumerate(self._held) if held.batches]

    def _drain(self, number: int) -> Tables:
        held = self._held[number]
        tables = assemble(held.dialect, held.batches, held.memory)
        held.batches, held.rows = [], 0
        self.drained += [Drained(t, number, tables[t].height) for t in COUNTED if t in tables and tables[t].height]
        return tables


def _ended(memory: Memory, rank: int) -> handover.Stream:
    one = memory.streams[rank]
    return handover.Stream(rank, one.kind, one.restarts, one.at, tuple(one.first), tuple(one.recent))


def parse_text(dialects: Dialect | Sequence[Dialect], text: bytes | str) -> Tables:
    """Read a text held in memory with the given dialects; tables metrics, checkpoints and events, without `source`."""
    many = [dialects] if isinstance(dialects, Dialect) else list(dialects)
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    matcher = Matcher(many)
    found = _lines.Cut(data).select(matcher.pattern)
    ready = matcher.feed(prefixes.strip(found, tasks=prefixes.numbers_tasks(found["text"]))) + matcher.close()
    return {name: pl.concat([frame, *(t[name] for t in ready if name in t)]) for name, frame in empty().items()}
