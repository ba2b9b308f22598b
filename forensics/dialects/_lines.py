"""Blocks of bytes to the few printed segments that matter, each with its line and byte.

A segment is the text between newlines, carriage returns and runs of backspaces; lines are counted by newline only. What
a program printed directly behind a bar of tqdm, which is drawn without a newline, is a segment of its own, and so is a
record that `pprint` or `json.dumps` spread over several lines: its counter may stand behind what it counts.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from forensics.io.columns import as_column
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily

Ints = npt.NDArray[np.int64]
_BREAKS = bytes.maketrans(b"\r\x08", b"\n\n")
#: The last bracket of a bar of tqdm, when something was printed directly behind it.
_GLUED = lazily(rb"<[\d:?]+, [^\]\n]{1,400}\](?=[^\s\]])")
#: An object that goes on in the next line, and a whole number of it.
_SPREAD = lazily(rb"\{(?:[ \t]*\n[ \t]+)?['\"][^'\"\n]{1,80}['\"]:[^\n]{0,400}[,{(\[][ \t]*\n(?=[ \t])")
_WHOLE = lazily(rb"['\"]([^'\"\n]{1,80})['\"]: ?\d+\s*[,}]")
#: A longer object is no record.
_RECORD_BYTES = 2_000
#: What opens and closes an object, and the end of a line behind which one begins that does not go on with it.
_MARKS = lazily(rb"[{}]|\n(?![ \t}\]])")
_GOES_ON = tuple(b" \t}]")
_COUNTERS = ("counter_of_steps", "counter_of_epochs")
_ASCII = bytes(range(128)) + b"?" * 128
_META = lazily(r"[\\.+*?()|\[\]{}^$]")
_MAX_REPAIRS = 10_000
#: So many segments are searched one by one in less time than a search over a column takes to begin.
_FEW = 200
#: The same for a literal.
_FEW_TEXTS = 1_000
#: A needle of fewer segments than this share of the first ones is looked for with the others of its kind.
_RARE = 0.2
#: So many bytes are split in less time than the reader of lines takes to begin.
_FEW_BYTES = 256 << 10
#: Of a small block so many shapes of lines are searched one by one, and a longer one never: each is kept.
_FEW_SHAPES, _SHAPE_CHARS = 32, 1_000
_DIGITS = str.maketrans("123456789", "0" * 9)
#: The reader of lines takes text that begins like this for compressed data: gzip, zstd, zlib (`x^` is one).
_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"x")
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


def _unglued(data: bytes) -> bytes:
    """The same number of bytes, with a newline in the place of each last bracket of a bar that text follows."""
    if b"%|" not in data:
        return data
    ends = [found.end() - 1 for found in _GLUED.finditer(data)]
    if not ends:
        return data
    parted = bytearray(data)
    for end in ends:
        parted[end] = ord("\n")
    return bytes(parted)


def _gathered(data: bytes) -> bytes:
    """The same number of bytes, with blanks for the newlines within each object that counts a step or an epoch.

    It begins in a line that is not indented and ends before the next such line: no byte is looked at twice, whatever a
    file nests, and a block that ends between two such lines parts no object.
    """
    if b"\n " not in data and b"\n\t" not in data:
        return data
    gathered, end = bytearray(data), 0
    for found in _SPREAD.finditer(data):
        begin = data.rfind(b"\n", max(found.start() - _RECORD_BYTES, 0), found.start()) + 1
        if data[begin] in _GOES_ON or found.start() - begin > _RECORD_BYTES:
            continue
        size, is_record = _object(data[found.start() : found.start() + _RECORD_BYTES])
        end = found.start() + size
        if is_record:
            gathered[found.start() : end] = data[found.start() : end].replace(b"\n", b" ")
    return bytes(gathered) if end else data


def whole_records(data: bytes) -> int:
    """How many bytes of a block are read before the next block is there: all but a record that may go on in it."""
    low = max(len(data) - 2 * _RECORD_BYTES, 0)
    tail = _unglued(data[low:].translate(_BREAKS))
    begin = depth = 0
    for mark in _MARKS.finditer(tail, 0, len(tail) - 1):
        if mark[0] == b"\n":
            begin, depth = mark.end(), 0
        else:
            depth = depth + 1 if mark[0] == b"{" else max(depth - 1, 0)
    return low + begin if depth and (begin or not low) else len(data)


def _object(data: bytes) -> tuple[int, bool]:
    """How many bytes were read of the object that begins here, and whether it is indented, ends, and counts."""
    depth = 0
    for mark in _MARKS.finditer(data):
        if mark[0] == b"\n":
            return mark.end(), False
        depth += 1 if mark[0] == b"{" else -1
        if not depth:
            names = (key.decode("utf-8", "replace").lower() for key in _WHOLE.findall(data, 0, mark.end()))
            return mark.end(), any(stands_for(means, name) for name in names for means in _COUNTERS)
    return len(data), False


def strings(data: bytes) -> pl.Series:
    """Split at newlines into a String column, one row per line; a newline at the end begins no line."""
    if len(data) < _FEW_BYTES:
        text = _decoded(data)
        return pl.Series(text.removesuffix("\n").split("\n") if text else [], dtype=pl.String)
    if data.startswith(_PACKED):
        return strings(b"\n" + data).slice(1)
    try:
        return pl.read_lines(data).to_series()
    except pl.exceptions.PolarsError:
        return pl.read_lines(repaired(data)).to_series()


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return repaired(data).decode()


def masked(text: str) -> str:
    """The same text with each digit as a 0: what stands in a text stands so in the masked one, too."""
    return text.translate(_DIGITS)


@lru_cache(maxsize=64)
def alternation(literals: tuple[str, ...]) -> str:
    """One pattern that finds any of the literals."""
    unique = sorted(set(literals), key=lambda s: (-len(s), s))
    every = "\n".join(unique)
    inner = [o for o in unique if every.count(o) > 1]  # those that may be part of another one
    kept = [s for s in unique if not any(o != s and o in s for o in inner)]
    return "|".join(literal(s) for s in kept)


def literal(text: str) -> str:
    """A pattern for exactly this text, in the words of both engines (Rust's refuses needless escapes)."""
    return _META.sub(r"\\\g<0>", text)


def holding(found: pl.DataFrame, pattern: re.Pattern[str]) -> pl.DataFrame:
    """The segments (column `text` among others) in which `pattern`, in the words of both engines, is found."""
    if found.height > _FEW:
        return found.filter(found["text"].str.contains(pattern.pattern))
    hits = [row for row, text in enumerate(found["text"].to_list()) if pattern.search(text)]
    return found[hits] if hits else found.clear()


def marked(found: pl.DataFrame, needles: Sequence[str]) -> Iterator[pl.DataFrame]:
    """For each needle the segments (column `text` among others) that contain it; all of them for an empty one."""
    column = found["text"]
    if found.height > _FEW_TEXTS:
        yield from _marked_many(found, needles)
        return
    texts: list[str] = column.to_list()
    whole, none = "\n".join(texts), found.clear()
    for needle in needles:
        hits = [row for row, text in enumerate(texts) if needle in text] if needle in whole else []
        yield found if len(hits) == len(texts) else found[hits] if hits else none


def _marked_many(found: pl.DataFrame, needles: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The same of many segments: those that hold any of the needles that few of them have are looked for at once."""
    head: list[str] = found["text"].head(_FEW).to_list()
    rare = [needle for needle in needles if needle and sum(needle in text for text in head) < _RARE * len(head)]
    few = found.filter(found["text"].str.contains_any(pl.Series(rare).implode())) if len(rare) > 1 else found
    for needle in needles:
        own = few if needle in rare else found
        yield own.filter(own["text"].str.contains(needle, literal=True)) if needle and own.height else own


def _holding_any(column: pl.Series, literals: tuple[str, ...]) -> pl.Series:
    """Whether each segment of a small block holds one of the literals.

    To compile hundreds of literals takes 5 ms, to look for them otherwise 1 ms, and most lines of a log differ in their
    digits only: what few shapes of lines may hold is looked for once in a process.
    """
    texts: list[str] = column.to_list()
    shapes = masked("\n".join(texts)).split("\n")
    distinct = set(shapes)
    if len(distinct) > _FEW_SHAPES or any(len(shape) > _SHAPE_CHARS for shape in distinct):
        return column.str.contains_any(pl.Series(literals).implode())
    near = {shape: _near(shape, literals) for shape in distinct}
    if not any(near.values()):
        return pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(texts))
    return pl.Series([any(one in text for one in near[shape]) for text, shape in zip(texts, shapes, strict=True)])


@lru_cache(maxsize=4096)
def _near(shape: str, literals: tuple[str, ...]) -> tuple[str, ...]:
    """The literals that a segment of this shape, in which each digit is a 0, may hold."""
    return tuple(one for one, form in zip(literals, _shapes(literals), strict=True) if form in shape)


@lru_cache(maxsize=64)
def _shapes(literals: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(masked, literals))


class Cut:
    """One block cut into segments once, from which several patterns may choose.

    `seq` numbers the segments of the file, of which `count` are in the block; `line` is 1-based by newline; `byte` is
    the offset in the decoded stream.
    """

    def __init__(self, data: bytes, *, first_line: int = 1, offset: int = 0, first_seq: int = 0) -> None:
        """Cut at newlines, carriage returns, backspaces and behind bars; a break at the end begins no segment."""
        self._original = data
        parted = _unglued(data.translate(_BREAKS) if b"\r" in data or b"\x08" in data else data)
        self.data = _gathered(parted)
        ends = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord("\n"))
        open_end = bool(data) and not self.data.endswith(b"\n")
        self.height = len(ends) + open_end
        #: Where each segment begins, and one more: where the segment after the last one would.
        self._begins: Ints = np.empty(self.height + 1, np.int64)
        self._begins[0], self._begins[-1] = 0, len(data) + 1 if open_end else len(data)
        np.add(ends, 1, out=self._begins[1 : len(ends) + 1])
        #: The number of each segment, and one more; a record that was gathered has those of all its lines.
        self._numbers = np.arange(self.height + 1)
        if self.data is not parted:
            every = np.flatnonzero(np.frombuffer(parted, np.uint8) == ord("\n"))
            self._numbers = np.searchsorted(every, self._begins, side="left")
            self._numbers[-1] = len(every) + open_end
        self.count = int(self._numbers[-1])
        self._strings: pl.Series | None = None
        self._first_line, self._offset, self._first_seq = first_line, offset, first_seq

    def select(self, pattern: str | None, *, but: Ints | None = None, literals: Sequence[str] = ()) -> pl.DataFrame:
        """Segments that `pattern` finds (all when None): columns seq, line, byte, text; ANSI sequences removed.

        `but`: numbers (`seq`) of segments that are not looked at. `literals`: what the pattern is any of.
        """
        if self._strings is None:
            self._strings = strings(self.data)
        keep, text = np.arange(self.height), self._strings
        if but is not None:
            keep = np.delete(keep, np.searchsorted(self._numbers, but - self._first_seq))
            text = text[as_column(keep)]
        if pattern is not None:
            is_small = literals and len(self.data) < _FEW_BYTES
            found = _holding_any(text, tuple(literals)) if is_small else text.str.contains(pattern)
            keep, text = keep[found.to_numpy()], text.filter(found)
        return self._framed(keep, text)

    def around(self, places: Ints) -> pl.DataFrame:
        """The segments that contain these places of the block; columns as `select`."""
        hit = np.zeros(self.height, np.bool_)
        hit[np.searchsorted(self._begins, places, side="right") - 1] = True
        keep = np.flatnonzero(hit)
        ends = self._begins[keep + 1] - 1
        parts = [self.data[low:high] for low, high in zip(self._begins[keep].tolist(), ends.tolist(), strict=True)]
        return self._framed(keep, strings(b"\n".join([*parts, b""])))

    def _framed(self, keep: Ints, text: pl.Series) -> pl.DataFrame:
        starts = self._begins[keep]
        if text.len() and b"\x1b" in self.data:
            text = text.str.replace_all(ANSI, "")
        return pl.DataFrame(
            [
                as_column(self._numbers[keep] + self._first_seq, "seq"),
                as_column(self._lines(keep, starts), "line"),
                as_column(starts + self._offset, "byte"),
                text.rename("text"),
            ]
        )

    def _lines(self, keep: Ints, starts: Ints) -> Ints:
        if self._original is self.data:
            return keep + self._first_line
        newlines = np.flatnonzero(np.frombuffer(self._original, np.uint8) == ord("\n"))
        return np.searchsorted(newlines, starts, side="left") + self._first_line


def union(one: Ints, other: Ints) -> Ints:
    """Both sets of segment numbers."""
    return np.concatenate([one, other]) if len(one) and len(other) else (one if len(one) else other)
