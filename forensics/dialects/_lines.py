"""Blocks of bytes to the few printed segments that matter, each with its line and byte.

A segment is the text between newlines, carriage returns and runs of backspaces; lines are counted by newline only.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
_BREAKS = bytes.maketrans(b"\r\x08", b"\n\n")
_ASCII = bytes(range(128)) + b"?" * 128
_MAX_REPAIRS = 10_000
ANSI = r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])"


def repaired(data: bytes) -> bytes:
    """The same number of bytes, valid as UTF-8: each byte that is not becomes `?`.

    After 10,000 repairs the rest of the block keeps its ASCII only, so that hostile bytes cost one pass.
    """
    fixed = bytearray(data)
    start, repairs = 0, 0
    view = memoryview(data)
    while True:
        try:
            codecs.utf_8_decode(view[start:], "strict", True)  # noqa: FBT003 - the codec's own signature
        except UnicodeDecodeError as error:
            low, high = start + error.start, start + error.end
            fixed[low:high] = b"?" * (high - low)
            start, repairs = high, repairs + 1
            if repairs >= _MAX_REPAIRS:
                fixed[high:] = data[high:].translate(_ASCII)
                return bytes(fixed)
        else:
            return bytes(fixed)


def strings(data: bytes) -> pl.Series:
    """Split at newlines into a String column, one row per segment."""
    whole = pl.Series("text", [data], dtype=pl.Binary)
    try:
        text = whole.cast(pl.String)
    except pl.exceptions.PolarsError:
        text = pl.Series("text", [repaired(data)], dtype=pl.Binary).cast(pl.String)
    return text.str.split("\n").explode()


def alternation(literals: Iterable[str]) -> str:
    """One pattern that finds any of the literals."""
    unique = sorted(set(literals), key=lambda s: (-len(s), s))
    kept = [s for s in unique if not any(o != s and o in s for o in unique)]
    return "|".join(re.escape(s).replace("\\ ", " ") for s in kept)


def segments(data: bytes, pattern: str | None, *, first_line: int = 1, offset: int = 0, first_seq: int = 0) -> pl.DataFrame:
    """Segments of a block that match `pattern` (all when None): columns seq, line, byte, text; ANSI removed.

    `seq` numbers the segments of the file; `line` is 1-based by newline; `byte` is the offset in the decoded stream.
    """
    original = data
    if b"\r" in data or b"\x08" in data:
        data = data.translate(_BREAKS)
    text = strings(data)
    if pattern is None:
        keep = np.arange(len(text))
    else:
        keep = text.str.contains(pattern).arg_true().to_numpy()
        text = text.gather(keep)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])[keep] if len(keep) else np.zeros(0, np.int64)
    if original is data:
        line = keep.astype(np.int64) + first_line
    else:
        newlines = np.flatnonzero(np.frombuffer(original, np.uint8) == 10)
        line = np.searchsorted(newlines, starts, side="left") + first_line
    if b"\x1b" in data:
        text = text.str.replace_all(ANSI, "")
    return pl.DataFrame({"seq": keep.astype(np.int64) + first_seq, "line": line, "byte": starts + offset, "text": text})


def count(data: bytes) -> int:
    """Segments that `segments` numbers in this block; the part after a final break belongs to the next block."""
    return data.count(b"\n") + data.count(b"\r") + data.count(b"\x08")


def union(one: Ints, other: Ints) -> Ints:
    """Both sets of segment numbers."""
    return np.concatenate([one, other]) if len(one) and len(other) else (one if len(one) else other)
