"""Training logs: stdout, stderr, job output, in any mixture of dialects, plain or compressed.

The dialects are found on a sample (head, tail and 64 places between); what is read then is metrics, checkpoint lines,
error signatures, tracebacks, success markers and the last line. Carriage returns and backspaces cut a line into
segments, lines count by newline. Program text in a log is not output, and a file that is program text is not a log.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import polars as pl
from msgspec import Struct, field

from forensics import registry
from forensics.dialects import prefixes, sniff, wraps
from forensics.dialects.clocks import calendar_of
from forensics.dialects.events import elastic
from forensics.dialects.handover import Handover, Stream
from forensics.dialects.reader import Begins, Bounds, Reader
from forensics.dialects.settings import dumps
from forensics.formats.kit import NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import settle
from forensics.formats.text.sample import choose, is_text, parts_of
from forensics.io.blocks import Block, count_lines
from forensics.io.limits import DEFAULT, Limits
from forensics.io.rank_words import words_before
from forensics.knowledge.errors import by_id, speaking_of, telling
from forensics.values import replace

#: Hits of one code that are not rows.
FLOOD = "hits between the first and the last ones were left out"
#: Bytes that are matched at once: what follows from them is about ten times as large while it is laid out.
PIECE_BYTES = 8 << 20
#: The event of a rank that prints into a log of several ranks.
PRINTS = "rank_prints"
#: A rank as a logger writes it: between brackets or bars, or behind a time; `rank=16` of a matrix is in no such
#: place.
_TAG = r"(?i)(?:\[|\| ?|\(|:\d\d(?:[.,]\d{1,6})? )(?:global_?)?rank[ _:=]{0,2}(\d{1,6})(?:\]| ?\||\)|:)"
#: What torchrun puts before the lines of its workers where they share a log: their number on the node.
_LOCAL = "[default"
#: Fewer lines than this say nothing of a format.
_FEW = 3
_GLOBS = (
    *("*.log", "*.log.[0-9]*", "*.txt", "*.out", "*.err", "stdout*", "stderr*", "*.o[0-9]*", "*.e[0-9]*"),
    *("slurm-*", "nohup*", "*output*", "*.jsonl", "log*", "*.log.json", "typescript"),
)


@ingester(
    "text_log",
    version=19,
    sniff=Sniff(glob=_GLOBS, fallback=True),
    emits=("metrics", "events", "checkpoints", "progress", "collectives", "facts"),
    slicing="forensics.formats.text.slices",
)
def read(opened: Opened, out: Out, limits: Limits = DEFAULT, piece_bytes: int = PIECE_BYTES) -> None:
    """Read one log; `piece_bytes` changes speed and memory only.

    Memory is bounded by a few blocks and, for dialects that need other lines, 200,000 matches. Raises `NotMine` for
    binary content and for program text.
    """
    log = log_of(opened, out, limits, piece_bytes=piece_bytes)
    log.take(opened.blocks(), out)
    for code, count in log.close(out):
        say_flood(out, code, count)
    log.settle(opened, out, 0)


class Speakers(Struct, frozen=True):
    """Who prints into a log: one rank, or those of a node from `first` on, whose tags count from 0; and its attempt."""

    rank: int | None
    attempt: int
    first: int = 0

    def counted(self, stream: Stream) -> Stream:
        """The stream of a rank by its number in the job."""
        return replace(stream, rank=stream.rank + self.first) if 0 <= stream.rank < self.first else stream


class Log(Struct):
    """A log as it is read: its reader, and what the file says of all lines."""

    reader: Reader
    by: Speakers
    piece_bytes: int
    #: Whether lines are strings of JSON objects.
    is_wrapped: bool
    said: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def warm(self, head: bytes, before: bytes) -> None:
        """Learn from whole lines of the head and before the first block."""
        opened = map(wraps.opened, (head, before)) if self.is_wrapped else (head, before)
        self.reader.warm(*opened)

    def take(self, blocks: Iterable[Block], out: Out) -> None:
        """Read blocks, in order."""
        for block in blocks:
            for cut in pieces(block, self.piece_bytes):
                piece = Block(wraps.opened(cut.data), cut.offset, cut.first_line) if self.is_wrapped else cut
                write_settings(out, piece, self.said)
                for tables in self.reader.feed(piece.data, offset=piece.offset, first_line=piece.first_line):
                    _write(out, tables, self.by)

    def close(self, out: Out, *, is_last: bool = True) -> list[tuple[str, int]]:
        """Write what was held back; give how many hits of which code were left out."""
        ready, flooded = self.reader.close(is_last=is_last)
        for tables in ready:
            _write(out, tables, self.by)
        return flooded

    def handover(self) -> Handover:
        """Say what other parts of the log need to know of the one that was read, by the ranks of its rows."""
        said = self.reader.handover()
        streams = tuple(tuple(self.by.counted(one) for one in every) for every in said.streams)
        return replace(said, ranked=self.by.rank is None, streams=streams)

    def settle(self, opened: Opened, out: Out, lines_before: int) -> None:
        """Hand over the account of bytes and lines, and what could not be read."""
        settle(opened, out, records=max(self.reader.lines - lines_before, 0))


def log_of(opened: Opened, out: Out, limits: Limits, *, piece_bytes: int = PIECE_BYTES, first_seq: int = 0) -> Log:
    """Look through a log, and give what reads it; raises `NotMine` for binary content and for program text."""
    if not is_text(opened):
        raise NotMine("not a text log")
    mtime_ns = opened.source.mtime_ns
    year = time.gmtime(mtime_ns / 1e9).tm_year if mtime_ns else 1970
    sampled = parts_of(opened)
    parts = [(place, wraps.opened(part)) for place, part in sampled]
    raw = sniff.sample_of([part for _, part in parts])
    calendar = calendar_of(year, parts, raw.to_list())
    tasks = prefixes.numbers_tasks(raw)
    begins = Begins(tasks, prefixes.lead_of([part for _, part in parts]))
    sample, ranks = sniff.bare(raw, tasks=tasks, lead=begins.tag)
    dialects = choose(registry.load("dialects").dialects, sample, calendar, ranks)
    out.format("+".join(d.name for d in dialects) or "text")
    bounds = Bounds(limits.quote_chars, limits.traceback_lines, calendar)
    reader = Reader(dialects, bounds, begins, first_seq=first_seq)
    joined = opened.source.rank is None and any(word in "\n".join(raw.to_list()) for word in words_before("launcher"))
    rank = opened.source.rank if opened.source.rank is not None or joined else _speaker(raw)
    by = Speakers(rank, opened.source.attempt or 0, _first_of_node(raw))
    if rank is None and not first_seq:
        _write(out, _printing(ranks), by)
    return Log(reader, by, piece_bytes, is_wrapped=parts != sampled)


def say_flood(out: Out, code: str, count: int) -> None:
    """State hits that were left out."""
    out.issue("flood", f"{code}: {FLOOD}", count=count)


def _printing(ranks: pl.Series) -> dict[str, pl.DataFrame]:
    """An event for each rank that lines of a log of several ranks begin with: one that says no more was there, too.

    Where most numbers up to the highest are missing, they count something else.
    """
    told = sorted({rank for rank in ranks.to_list() if rank is not None})
    if len(told) < 2 or 2 * len(told) <= told[-1]:
        return {}
    row = {"rank": pl.Series(told, dtype=pl.Int64), "text": [f"lines of rank {rank}" for rank in told]}
    said = {"code": pl.lit(PRINTS), "level": pl.lit("info"), "seq": pl.lit(0, dtype=pl.Int64)}
    return {"events": pl.DataFrame(row).with_columns(**said)}


def _speaker(sample: pl.Series) -> int | None:
    """The rank that a logger puts behind the time and the level of most lines, where it is one for all of them."""
    if "rank" not in "\n".join(sample.to_list()).lower():
        return None
    said = sample.str.extract(_TAG).drop_nulls()
    return int(said[0]) if said.n_unique() == 1 and len(said) >= max(_FEW, len(sample) / 2) else None


def _first_of_node(sample: pl.Series) -> int:
    """The first rank of the node whose launcher tags lines with numbers of its own; 0 where the log does not say it."""
    text = "\n".join(sample.to_list())
    if _LOCAL not in text:
        return 0
    for row in (by_id()[code] for code in sorted(telling("ranks_of_agent") | telling("node_of_ranks"))):
        if (hit := row.compiled.search(text)) is not None:
            said = {name.partition("__")[0]: int(number) for name, number in hit.groupdict().items() if number}
            return said.get("first", said.get("node", 0) * said.get("each", 0))
    return 0


def pieces(block: Block, piece_bytes: int = PIECE_BYTES) -> Iterator[Block]:
    """A block in parts of whole lines, about `piece_bytes` each: tables of fewer rows, so less memory at once."""
    data, begin, line = block.data, 0, block.first_line
    while len(data) - begin > 3 * piece_bytes // 2 and (end := data.rfind(b"\n", begin, begin + piece_bytes) + 1):
        part = data[begin:end]
        yield Block(part, block.offset + begin, line)
        line += count_lines(part)
        begin = end
    yield Block(data[begin:], block.offset + begin, line) if begin else block


def _write(out: Out, tables: dict[str, pl.DataFrame], by: Speakers) -> None:
    rank, attempt = by.rank, by.attempt
    for table, rows in tables.items():
        if not rows.height:
            continue
        frame = _counted_on(rows, by.first) if by.first else rows
        if table == "collectives":
            file_rank = pl.lit(rank, dtype=pl.Int64)
            frame = frame.with_columns(rank=pl.coalesce("rank", file_rank, "speaker")).drop("speaker")
        elif "rank" in frame.columns and rank is not None:
            own = pl.Series("rank", [rank], dtype=pl.Int64).new_from_index(0, frame.height)
            if "code" in frame.columns:
                named = frame["code"].is_in([elastic.FAILURE, *speaking_of("named")])
                own = frame["rank"].cast(pl.Int64).zip_with(named, own) if named.any() else own
            frame = frame.with_columns(own)
        if "attempt" in frame.columns and attempt:
            frame = frame.with_columns(pl.col("attempt") + attempt)
        out.rows(table, frame)


def _counted_on(rows: pl.DataFrame, first: int) -> pl.DataFrame:
    """Rows with the ranks of those whose tags count on their node: they are below the first rank of the node."""
    names = [name for name in ("rank", "speaker") if name in rows.columns]
    others = (
        pl.col("code").is_in([elastic.FAILURE, *speaking_of("named")])
        if "code" in rows.columns
        else pl.lit(value=False)
    )
    counts = {name: (pl.col(name) < first) & ~others.fill_null(value=False) for name in names}
    return rows.with_columns(
        pl.when(own).then(pl.col(name) + first).otherwise(name).alias(name) for name, own in counts.items()
    )


# Settings among the first bytes of a text log, as facts with their lines.


def write_settings(out: Out, piece: Block, known: set[tuple[str, str]]) -> None:
    """Write what a piece of a log prints of its settings, less what is `known`; pieces far in are left alone."""
    if piece.offset >= dumps.SCANNED_BYTES:
        return
    found = dumps.settings(piece.data[: dumps.SCANNED_BYTES])
    if not found:
        return
    facts = ConfigFacts()
    line, at = piece.first_line, 0
    for row in found:
        line, at = line + piece.data.count(b"\n", at, row.at), row.at
        if (row.key, repr(row.value)) not in known:
            known.add((row.key, repr(row.value)))
            facts.put(row.key, row.value, line, row.family)
    facts.write(out)
