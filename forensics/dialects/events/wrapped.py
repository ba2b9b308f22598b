"""Lines that a terminal, a notebook or a log shipper broke at its own width, put together again.

Only the few lines that begin a known long message and do not hold the whole of it are looked at: the next lines are
joined to them, with and without a blank between, until the message is whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import polars as pl

from forensics.dialects import prefixes
from forensics.dialects._lines import holding
from forensics.io.tables import table_rows
from forensics.patterns import lazily

#: Beginnings of messages that are longer than a terminal is wide, and what each holds when it is whole.
_WHOLE: Mapping[str, str] = {
    begins: whole for begins, whole, _ in table_rows("forensics.dialects.events", "wrapped.tsv")
}
#: A line of this file of PyTorch may have been broken before the words above.
_SPEAKER = "GroupNCCL.cpp:"
#: One of these is in every line that may be mended.
NEEDLES = (_SPEAKER, *_WHOLE)
_BEGINS = lazily("|".join(re.escape(words).replace(r"\ ", " ") for words in NEEDLES))
_RULES = tuple((words, lazily(pattern)) for words, pattern in _WHOLE.items())
#: A message that spans more lines is not put together.
_MOST_LINES = 10
_MOST_WAYS = 64
_MOST_ROWS, _WINDOW_BYTES, _LINE_CHARS = 5_000, 8 << 10, 4_000
_BREAK = lazily(rb"[\n\r\x08]")


def mended(found: pl.DataFrame, data: bytes, offset: int, lead: prefixes.Lead | None = None) -> pl.DataFrame:
    """The suspects (columns seq, line, byte, text, raw, rank) of one block, broken messages whole again.

    The lines that a message took in are no suspects of their own any more.
    """
    heads = holding(found, _BEGINS)
    if not heads.height:
        return found
    texts, seqs, bytes_ = found["text"].to_list(), found["seq"].to_list(), found["byte"].to_list()
    changed: dict[int, str] = {}
    taken: set[int] = set()
    row_of = {seq: row for row, seq in enumerate(seqs)}
    for seq in heads["seq"].head(_MOST_ROWS).to_list():
        row = row_of[seq]
        text = str(texts[row])
        patterns = [pattern for words, pattern in _RULES if words in text]
        if seqs[row] in taken or len(text) > _LINE_CHARS:
            continue
        if patterns and all(pattern.search(text) for pattern in patterns):
            continue
        whole = _joined(text, patterns, _following(data, bytes_[row] - offset, lead))
        if whole is not None:
            changed[row], lines = whole
            taken.update(range(seqs[row] + 1, seqs[row] + 1 + lines))
    if not changed:
        return found
    fixed = found.with_columns(text=found["text"].scatter(list(changed), list(changed.values())))
    return fixed.filter(~pl.col("seq").is_in(list(taken)))


def _following(data: bytes, begin: int, lead: prefixes.Lead | None) -> list[str]:
    """The lines after the one that begins there, without prefixes; blank ones are empty."""
    window = data[begin : begin + _WINDOW_BYTES]
    parts = _BREAK.split(window, maxsplit=_MOST_LINES)[1:_MOST_LINES]
    lines = [part.decode("utf-8", "replace").strip() for part in parts]
    return [line[len(prefixes.split(line, lead)[0]) :] for line in lines]


def _joined(text: str, patterns: list[re.Pattern[str]], lines: list[str]) -> tuple[str, int] | None:
    """The message with as few of the lines as make it whole, and how many these are; or None.

    Where its words were broken themselves (no `patterns`), whichever known message comes out is taken.
    """
    ways = [text.rstrip()]
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        if _SPEAKER in line or (patterns and any(words in line for words, _ in _RULES)):
            return None
        # a line may have been broken inside a word or at a blank, the next one in the other way
        ways = [f"{way}{between}{line}" for way in ways[:_MOST_WAYS] for between in ("", " ")]
        for whole in ways:
            found = patterns or [pattern for words, pattern in _RULES if words in whole]
            if found and all(pattern.search(whole) for pattern in found):
                return whole, number
    return None
