"""Where the keys and records of a JSON document are, so each number has a line; and what a cut one holds."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import cast

from msgspec import Struct, field

from forensics.dialects.names import of_each_rank, of_rank
from forensics.dialects.spec import DECIMAL_COMMA
from forensics.errors import InputError
from forensics.formats.rows.metrics import nanoseconds, unix_ns
from forensics.formats.rows.out import Out
from forensics.formats.rows.text import Line, lines_of
from forensics.io.reading import Opened
from forensics.io.tolerant_json import loads
from forensics.patterns import lazily

_TOKEN = lazily(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_MOST_TOKENS, _DEEPEST = 4_000_000, 200
#: A longer text is no number.
NUMBER_CHARS = 64
#: A date with hours and minutes has so many characters, with a fraction and a zone.
_DATE_CHARS = range(16, 40)
#: Beyond it, not every whole number is a float.
FLOAT_HOLDS = 1 << 53
#: A list of more numbers is none of ranks.
_MOST_RANKS = 100_000
_INT64 = range(-(1 << 63), 1 << 63)
_WHOLE = lazily(r"\s*[-+]?\d+\s*", re.ASCII)
_COMMA = lazily(DECIMAL_COMMA, re.ASCII)
Path = tuple[str | int, ...]
Span = tuple[int, int]


def _no_newlines() -> array[int]:
    return array("q")


class Offsets(Struct, frozen=True):
    """Bytes at which keys begin, by their path from the root, and where the lines of the document end."""

    at: Mapping[Path, int] = field(default_factory=dict[Path, int])
    newlines: array[int] = field(default_factory=_no_newlines)

    def of(self, path: Path) -> tuple[int | None, int | None]:
        """Line (from 1) and byte of a key; None where it was not found."""
        at = self.at.get(path)
        return (None, None) if at is None else (bisect_right(self.newlines, at) + 1, at)


class Places(Struct, frozen=True):
    """Spans of the records in a document, as begin and end offsets, and the offsets of its newlines."""

    data: bytes = b""
    spans: tuple[Span, ...] = ()
    newlines: array[int] = field(default_factory=_no_newlines)

    def line(self, at: int) -> int:
        """Line (from 1) of an offset."""
        return bisect_right(self.newlines, at) + 1

    def keys(self, record: int) -> Mapping[str, int]:
        """Offsets of the keys of a record, without the keys of nested objects; empty for a record that is not there."""
        if record >= len(self.spans):
            return {}
        begin, end = self.spans[record]
        steps = _walk(self.data[begin:end])
        return {str(path[0]): begin + at for text, path, at in steps if text == b":" and len(path) == 1}


def offsets_of(data: bytes, wanted: Collection[Path]) -> Offsets:
    """Find the wanted keys; the last of two equal ones counts, as it does for a parser."""
    keys = ((tuple(path), at) for text, path, at in _walk(data, _MOST_TOKENS) if text == b":")
    return Offsets({cast("Path", path): at for path, at in keys if path in wanted}, _newlines(data))


def places(data: bytes, *under: str) -> Places:
    """Find the objects of the list under the keys `under`, or of the list that the document is; one pass."""
    return Places(data, tuple(_objects(data, under, int).values()), _newlines(data))


def objects_under(data: bytes, *under: str) -> Mapping[str, Span]:
    """Spans of the whole objects in the object under the keys `under`, by their keys."""
    return cast("Mapping[str, Span]", _objects(data, under, str))


def _objects(data: bytes, under: tuple[str, ...], kind: type) -> dict[str | int | None, Span]:
    """Spans of the objects in one list or object, by index or key; of two that have one place the last counts."""
    found: dict[str | int | None, Span] = {}
    depth, begin = len(under), 0
    for text, path, at in _walk(data):
        if text == b":" or len(path) > depth + 1:
            continue
        if len(path) == depth and text in b"{[" and tuple(path) == under:
            found = {}
        elif len(path) == depth + 1 and isinstance(path[-1], kind) and tuple(path[:-1]) == under:
            if text == b"{":
                begin = at
            elif text == b"}":
                found[path[-1]] = begin, at
    return found


def _walk(data: bytes, most_tokens: int | None = None) -> Iterator[tuple[bytes, list[str | int | None], int]]:
    """Each `:` with the offset of its key, each bracket with that of its outer side, and the path to what it is of.

    The path, which goes on changing, has an index for each open list and a key for each open object, None before it.
    """
    path: list[str | int | None] = []
    word, word_at = b"", 0
    for token in islice(_TOKEN.finditer(data), most_tokens):
        text = token.group()
        if text[:1] == b'"':
            word, word_at = text, token.start()
        elif text == b":" and path:
            path[-1] = key_of(word)
            yield text, path, word_at
        elif text == b"," and path:
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif text in b"{[" and len(path) <= _DEEPEST:
            yield text, path, token.start()
            path.append(None if text == b"{" else 0)
        elif text in b"{[":
            return
        elif text in b"}]" and path:
            path.pop()
            yield text, path, token.end()
            if path and not isinstance(path[-1], int):
                path[-1] = None


def _newlines(data: bytes) -> array[int]:
    return array("q", (match.start() for match in re.finditer(rb"\n", data)))


def key_of(word: bytes) -> str:
    """A key as the document gives it, from its quoted text."""
    if b"\\" in word:
        try:
            return str(loads(word))
        except InputError:
            pass
    return word[1:-1].decode("utf-8", "replace")


def record_of(text: bytes) -> dict[str, object] | None:
    """A line as the JSON object that it is, a byte-order mark before it left out; None for anything else."""
    text = text.strip().removeprefix(b"\xef\xbb\xbf")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    return object_of(text)


def object_of(data: bytes) -> dict[str, object] | None:
    """A document as the JSON object that it is; None for anything else."""
    try:
        found = loads(data)
    except InputError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _all_kept(key: str, cell: object) -> bool:
    del key, cell
    return False


def flat(
    record: Mapping[str, object],
    joint: str,
    most: int,
    left_out: Callable[[str, object], bool] = _all_kept,
    above: str = "",
) -> Iterator[tuple[str, object]]:
    """The cells of a record in order, those of objects within, up to `most` levels, by names joined with `joint`.

    A list with a number of each rank, as its name says, is as many cells.
    """
    for key, cell in record.items():
        if left_out(key, cell):
            continue
        if isinstance(cell, dict) and most:
            yield from flat(cast("dict[str, object]", cell), joint, most - 1, left_out, f"{above}{key}{joint}")
        elif (
            isinstance(cell, list)
            and (numbers := cast("list[object]", cell)[:_MOST_RANKS])
            and _is_by_rank(key, numbers)
        ):
            yield from ((f"{above}{of_rank(of_each_rank(key), rank)}", one) for rank, one in enumerate(numbers))
        else:
            yield f"{above}{key}", cell


def _is_by_rank(key: str, numbers: list[object]) -> bool:
    """Whether a list has a number of each rank; whole ones may be the ranks."""
    return of_each_rank(key) != "" and any(isinstance(one, float) for one in numbers)


def is_media(key: str, cell: object) -> bool:
    """Whether a cell is an object that a tracker keeps of a picture, a table or another medium."""
    del key
    return isinstance(cell, dict) and "_type" in cell


class JsonLines(Struct):
    """The JSON objects among the lines of a source, with their lines; all others are stated, and their bytes lost.

    `kind` is what an object with the key `needed` is called.
    """

    opened: Opened
    out: Out
    kind: str = "JSON object"
    needed: str = ""
    lost_bytes: int = 0

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Read them once, in order."""
        for line in lines_of(self.opened):
            record = record_of(line.text)
            if record is not None and (not self.needed or self.needed in record):
                yield line, record
            elif line.text.strip():
                self.lost_bytes += len(line.text)
                not_one = "line-not-json", f"a line is no {self.kind}"
                wrong = not_one if line.ended else ("row-cut", "the last line is cut and was not read")
                self.out.issue(*wrong, byte=line.byte, line=line.number)


#: What may be between the records of a list.
_BETWEEN = b" \t\r\n,[]\xef\xbb\xbf"


class JsonList(Struct):
    """The JSON objects of the list that a document is, with their places; all else is stated, and its bytes lost."""

    where: Places
    out: Out
    count: int = 0
    lost_bytes: int = 0

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Read them once, in order."""
        data, reached = self.where.data, 0
        for begin, end in self.where.spans:
            self.lost_bytes += len(data[reached:begin].translate(None, _BETWEEN))
            reached = end
            line = Line(self.where.line(begin), begin, data[begin:end], ended=True)
            record = record_of(line.text)
            if record is None:
                self.out.issue("damaged", "a record is no JSON object", byte=begin, line=line.number)
                self.lost_bytes += end - begin
                continue
            self.count += 1
            yield line, record
        rest = data[reached:].strip()
        if rest != b"]":
            self.out.issue("damaged", f"the list is cut; {self.count} records before it were read", byte=reached)
            self.lost_bytes += len(rest)


def number(cell: object) -> float | None:
    """A cell as a number: numbers, and strings that print one (`"nan"`, `"0.5"`, `"Infinity"`); else None.

    A whole number of 64 bits that no float can hold stays the integer that it is: it may be a step.
    """
    if isinstance(cell, float):
        return cell
    if isinstance(cell, int) and not isinstance(cell, bool):
        return _exact(cell)
    # Python reads 1_000 as a number, and no writer means it
    if isinstance(cell, str) and 0 < len(cell) < NUMBER_CHARS and "_" not in cell:
        try:
            found = float(cell)
        except ValueError:
            return float(cell.replace(",", ".")) if "," in cell and _COMMA.match(cell.strip()) else None
        return found if -FLOAT_HOLDS < found < FLOAT_HOLDS or not _WHOLE.fullmatch(cell) else _exact(int(cell))
    return None


def _exact(whole: int) -> float:
    if -FLOAT_HOLDS < whole < FLOAT_HOLDS:
        return float(whole)
    if whole in _INT64:
        return whole
    try:
        return float(whole)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf


def records_before_damage(data: bytes, where: Places) -> tuple[list[object], int]:
    """The records that are whole, and how many bytes of the document they reach."""
    records: list[object] = []
    reached = 0
    for start, end in where.spans:
        try:
            record: object | None = loads(data[start:end])
        except InputError:
            record = None
        else:
            reached = end
        records.append(record)
    return records, reached


def dated(cell: object) -> int | None:
    """A date and time as ISO 8601 has it, whatever its zone, or a unix time; None for anything else."""
    if isinstance(cell, str) and len(cell) in _DATE_CHARS:
        with suppress(ValueError):
            return nanoseconds(datetime.fromisoformat(cell).replace(tzinfo=UTC).timestamp())
    return unix_ns(number(cell))
