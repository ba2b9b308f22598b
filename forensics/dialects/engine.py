"""Text in, tables out: one pass of literals over each block, everything else on the lines that hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from forensics.dialects import _counters, _direct, _lines, prefixes
from forensics.dialects._assemble import Memory, assemble, empty, needs_whole_file
from forensics.dialects._match import LEARN_FROM, Batch, Learned, claims, matches
from forensics.dialects.spec import Dialect

Tables = dict[str, pl.DataFrame]
#: Matches that are held back for a dialect whose steps depend on other lines, and for any other.
HELD_MATCHES, HELD_A_WHILE = 60_000, 16_000


@dataclass(slots=True)
class _Used:
    direct: _direct.Direct
    lines: int = 0


@dataclass(slots=True)
class _Held:
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

    __slots__ = ("_held", "needles", "pattern")

    def __init__(self, dialects: Sequence[Dialect], *, year: int = 1970, learn_from: int = LEARN_FROM) -> None:
        """`year` is for timestamps that print none; `learn_from` lines of a kind are worth learning a layout."""
        self._held = [_Held(d, Learned(year, learn_from)) for d in dialects]
        self.needles = tuple(line.needle for d in dialects for line in d.lines)
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
                    batch, printed = _direct.read(used.direct, printed)
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
        for held in self._held:
            lines = _counters.sparse(found) if held.dialect is _counters.COUNTERS else found
            batches = matches(held.dialect, lines, held.learned, claimed)
            if len(self._held) > 1:
                claimed = _lines.union(claimed, claims(batches))
            held.keep(batches)
            if held.batches and held.rows >= (HELD_MATCHES if needs_whole_file(held.dialect) else HELD_A_WHILE):
                ready.append(_drain(held))
        return ready

    def _learn(self, held: _Held) -> None:
        every = [other.dialect for other in self._held]
        for sample in held.learned.fresh:
            line = held.dialect.lines[sample.kind]
            direct = _direct.learn(every, line, sample, held.learned.year)
            if direct is not None:
                held.directs.append(_Used(direct))
        held.learned.fresh.clear()

    def close(self) -> list[Tables]:
        """Give the rows that were held back."""
        return [_drain(held) for held in self._held if held.batches]


def _drain(held: _Held) -> Tables:
    tables = assemble(held.dialect, held.batches, held.memory)
    held.batches, held.rows = [], 0
    return tables


def parse_text(dialects: Dialect | Sequence[Dialect], text: bytes | str) -> Tables:
    """Read a text held in memory with the given dialects; tables metrics, checkpoints and events, without `source`."""
    many = [dialects] if isinstance(dialects, Dialect) else list(dialects)
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    matcher = Matcher(many)
    found = _lines.Cut(data).select(matcher.pattern)
    ready = matcher.feed(prefixes.strip(found, tasks=prefixes.numbers_tasks(found["text"]))) + matcher.close()
    return {name: pl.concat([frame, *(t[name] for t in ready if name in t)]) for name, frame in empty().items()}
