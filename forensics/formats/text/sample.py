"""A look into a file before it is read: is it a text log at all, and which dialects does it speak."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from forensics.dialects import sniff
from forensics.dialects.clocks import Calendar
from forensics.dialects.engine import Matcher
from forensics.dialects.learned.generic import learn
from forensics.dialects.spec import Dialect
from forensics.io.reading import Opened
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.values import replace

_WHOLE_BYTES = 1 << 20
_END_BYTES = 256 << 10
_SPREAD, _SPREAD_BYTES = 64, 16 << 10
_PROBE_BYTES = 16 << 10
_LEARN_LINES = 20_000
_TEXT_CONTROLS = b"\t\n\r\x08\x0c\x1b\x07"
_CONTROLS = bytes(c for c in range(32) if c not in _TEXT_CONTROLS) + b"\x7f"
_ODD_SHARE = 0.1


def is_text(opened: Opened) -> bool:
    """Whether the content is printed text: few control characters, mostly UTF-8; a hole of NULs is allowed."""
    name = opened.source.path.rsplit("/", 1)[-1]
    head = opened.text_head(_PROBE_BYTES)
    if stands_for("log_where_it_counts", name) and learn(head.decode("utf-8", "replace").splitlines()) is None:
        return False
    if stands_for("never_log_file", name) and not (
        _is_json_lines(name, head) or stands_for("record_of_a_job", head.decode("utf-8", "replace"))
    ):
        return False
    if head.startswith(
        (b"%PDF-", b"\x89PNG", b"\x7fELF", b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
    ):
        return False
    parts = [head]
    if not opened.compression and opened.head(2) not in (b"\xff\xfe", b"\xfe\xff"):
        parts += [opened.span(opened.size_bytes // 2, _PROBE_BYTES), opened.tail(_PROBE_BYTES)]
    probe = b"".join(re.sub(rb"\x00{8,}", b"", part) if b"\0" in part else part for part in parts)
    if not probe:
        return opened.size_bytes == 0
    controls = len(probe) - len(probe.translate(None, _CONTROLS))
    broken = probe.decode("utf-8", "replace").count("\ufffd")
    return controls / len(probe) <= _ODD_SHARE and broken / len(probe) <= 3 * _ODD_SHARE


def _is_json_lines(name: str, head: bytes) -> bool:
    if ".json" not in name.lower():
        return False
    lines = head.split(b"\n", 2)
    return len(lines) > 2 and all(line.strip().startswith(b"{") and line.strip().endswith(b"}") for line in lines[:2])


def parts_of(opened: Opened) -> list[tuple[int, bytes]]:
    """Head, tail and 64 places between (all of a file up to 1 MiB), each where it is; of a compressed file the head."""
    size = opened.size_bytes
    if opened.compression or size <= _WHOLE_BYTES or opened.head(2) in (b"\xff\xfe", b"\xfe\xff"):
        return [(0, opened.text_head(_WHOLE_BYTES))]
    step = (size - 2 * _END_BYTES) // _SPREAD
    places = [_END_BYTES + i * step for i in range(_SPREAD)] if step > 0 else []
    between = [_inner(place, opened.span(place, _SPREAD_BYTES)) for place in places]
    return [(0, opened.head(_END_BYTES)), *between, _inner(size - _END_BYTES, opened.tail(_END_BYTES))]


def _inner(place: int, part: bytes) -> tuple[int, bytes]:
    """The whole lines of a piece that was cut anywhere."""
    begin = part.find(b"\n") + 1
    return place + begin, part[begin : part.rfind(b"\n") + 1]


def choose(
    dialects: Sequence[Dialect], sample: pl.Series, calendar: Calendar, ranks: pl.Series | None = None
) -> list[Dialect]:
    """The dialects of the sample, best first; last one learned from the lines that they leave.

    Where they give no training loss it is learned from all lines; else from those of evaluations only, which a program
    often prints beside what its trainer does. `ranks`: which rank printed each segment, where prefixes tell.
    """
    known = sniff.active(dialects, sample)
    found = _read(known, sample, calendar) if known else {}
    has_loss = bool(found) and sniff.has_loss(_names(found))
    if has_loss:
        claimed = {line for rows in found.values() if "line" in rows.columns for line in rows["line"].to_list()}
        free = ~pl.Series(range(len(sample)), dtype=pl.Int64).is_in(list(claimed))
        kept = free & sample.str.contains(words_for("line_of_evaluation")).fill_null(value=False)
        sample, ranks = sample.filter(kept), None if ranks is None else ranks.filter(kept)
    lines, frame = sample.head(_LEARN_LINES).to_list(), words_for("frame_of_a_traceback")
    own = [at for at, line in enumerate(lines) if '", line ' not in line or not re.search(frame, line)]
    who = [] if ranks is None else ranks.head(_LEARN_LINES).to_list()
    learned = learn([lines[at] for at in own], [who[at] for at in own] if who else (), beside=has_loss) if own else None
    if learned is not None and has_loss:
        learned = _of_evaluations(learned)
    return [*known, learned] if learned is not None else known


def _of_evaluations(learned: Dialect) -> Dialect | None:
    """A learned dialect with those of its lines that name a metric of an evaluation; None without any."""
    names = ((line, [name.canonical for name in line.names.values() if name is not None]) for line in learned.lines)
    lines = tuple(line for line, said in names if any(stands_for("line_of_evaluation", one) for one in said))
    return replace(learned, lines=lines) if lines else None


def _read(dialects: Sequence[Dialect], sample: pl.Series, calendar: Calendar) -> dict[str, pl.DataFrame]:
    """What the dialects read of the sample, by table."""
    segments = pl.DataFrame({"text": sample}).with_row_index("seq").with_columns(
        seq=pl.col("seq").cast(pl.Int64), line=pl.col("seq").cast(pl.Int64), byte=pl.lit(0, dtype=pl.Int64),
        raw=pl.col("text"), rank=pl.lit(None, dtype=pl.Int64),
    )  # fmt: skip
    matcher = Matcher(dialects, calendar)
    ready = matcher.feed(segments) + matcher.close()
    names = dict.fromkeys(name for tables in ready for name in tables)
    return {name: pl.concat([tables[name] for tables in ready if name in tables]) for name in names}


def _names(found: Mapping[str, pl.DataFrame]) -> list[str]:
    return sorted(found["metrics"]["name"].unique().to_list()) if "metrics" in found else []
