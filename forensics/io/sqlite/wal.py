"""Write-ahead logs of SQLite: the pages that committed transactions left there, as bytes; no SQL is ever run.

A writer that is killed leaves its last transactions in `<database>-wal` only. SQLite itself would run recovery on the
files, write to them, and evaluate the schema; here the log is a map from pages to where their last committed bytes
begin. A frame counts when its salts are those of the log and the checksum over all frames up to it holds; it is
committed when a frame that ends a transaction follows or is reached. What was written before the log began anew has
other salts: its pages are in the database.

Layout: sqlite.org, "WAL-mode File Format", sections 2.1 to 2.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[int, int], bytes]

MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_VERSION = 3_007_000
_HEADER = struct.Struct(">4s3I8s2I")
_FRAME = struct.Struct(">2I8s2I")
_CHUNK_BYTES = 1 << 20
_WORD = 0xFFFFFFFF


class Log(Struct, frozen=True):
    """The committed pages of a log.

    `pages`: where in the log the bytes of each page begin; `db_pages`: pages of the database after the last commit;
    `good_bytes`: of the log, up to the last commit; `lost_bytes` behind them hold what was never committed or cannot be
    read, for the reason `why`. Without a sound header nothing of it is good.
    """

    read: Read
    page_bytes: int = 0
    pages: dict[int, int] = field(default_factory=dict[int, int])
    db_pages: int = 0
    good_bytes: int = 0
    lost_bytes: int = 0
    why: str = ""

    def page(self, number: int) -> bytes | None:
        """The last committed bytes of a page; None for a page that the log does not have."""
        at = self.pages.get(number)
        return None if at is None else self.read(at, self.page_bytes)


class _Frame(Struct, frozen=True):
    number: int
    commit: int
    at: int


def log_of(read: Read, size_bytes: int, chunk_bytes: int = _CHUNK_BYTES) -> Log:
    """Read a log of `size_bytes`, of which `read(offset, count)` gives parts."""
    if not size_bytes:
        return Log(read)
    head = read(0, _HEADER.size)
    if len(head) < _HEADER.size:
        return Log(read, lost_bytes=size_bytes, why="its header is cut")
    magic, version, page_bytes, _, salts, *sums = _HEADER.unpack(head)
    sound = magic in MAGICS and version == _VERSION and 512 <= page_bytes <= 65536 and not page_bytes & (page_bytes - 1)
    if not sound or _checksum(head[:24], magic, (0, 0)) != tuple(sums):
        return Log(read, lost_bytes=size_bytes, why="its header is damaged")
    pages: dict[int, int] = {}
    waiting: dict[int, int] = {}
    log = Log(read, page_bytes, pages, 0, _HEADER.size)
    frames = _frames(read, log, (magic, salts, sums[0], sums[1]), chunk_bytes)
    end = good = _HEADER.size
    db_pages = 0
    for frame in frames:
        waiting[frame.number] = frame.at
        end = frame.at + page_bytes
        if frame.commit:
            pages.update(waiting)
            waiting.clear()
            good, db_pages = end, frame.commit
    lost, why = _behind(read, (good, end, size_bytes), page_bytes, salts)
    return Log(read, page_bytes, pages, db_pages, good, lost, why)


def _behind(read: Read, ends: tuple[int, int, int], page_bytes: int, salts: bytes) -> tuple[int, str]:
    """Bytes behind the last commit that are lost, and why; frames of an older log are not."""
    good, end, size_bytes = ends
    head = read(end, _FRAME.size)
    if len(head) == _FRAME.size and _FRAME.unpack(head)[2] == salts:
        whole = end + _FRAME.size + page_bytes <= size_bytes
        return size_bytes - good, "a frame is damaged" if whole else "its last frame is cut"
    if end > good:
        return end - good, "its last transaction was never committed"
    return (size_bytes - good, "its last frame is cut") if 0 < len(head) < _FRAME.size else (0, "")


def _frames(read: Read, log: Log, begin: tuple[bytes, bytes, int, int], chunk_bytes: int) -> Iterator[_Frame]:
    """Frames in order, up to the first whose salts or checksum are not right."""
    magic, salts, *state = begin
    frame_bytes = _FRAME.size + log.page_bytes
    at = _HEADER.size
    one, two = state
    while data := read(at, max(chunk_bytes // frame_bytes, 1) * frame_bytes):
        count = len(data) // frame_bytes
        (a, b, c), sums = _weights(log.page_bytes)[0], _sums(data[: count * frame_bytes], magic, frame_bytes)
        for index, (first, second) in enumerate(sums):
            number, commit, salt, *checksum = _FRAME.unpack_from(data, index * frame_bytes)
            one, two = (a * one + b * two + first) & _WORD, (b * one + c * two + second) & _WORD
            if not number or salt != salts or checksum != [one, two]:
                return
            yield _Frame(number, commit, at + index * frame_bytes + _FRAME.size)
        if len(data) < frame_bytes or len(data) % frame_bytes:
            return
        at += len(data)


def _checksum(data: bytes, magic: bytes, state: tuple[int, int]) -> tuple[int, int]:
    """The checksum of SQLite over pairs of words, whose byte order the magic tells."""
    one, two = state
    for first, second in struct.iter_unpack(f"{_order(magic)}2I", data):
        one = (one + first + two) & _WORD
        two = (two + second + one) & _WORD
    return one, two


def _order(magic: bytes) -> str:
    return ">" if magic == MAGICS[1] else "<"


@lru_cache(maxsize=8)
def _weights(page_bytes: int) -> tuple[tuple[int, int, int], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What a frame does to a checksum, as it is linear: three factors of the one before, four weights of its words.

    A pair of words (x, y) makes (s, t) to (s + t + x, s + 2t + x + y): powers of that matrix are Fibonacci numbers.
    """
    import numpy as np  # noqa: PLC0415 - most runs have no such log

    pairs = 1 + page_bytes // 8
    numbers = [1, 0]  # F(-1), F(0)
    while len(numbers) < 2 * pairs + 4:
        numbers.append((numbers[-1] + numbers[-2]) & _WORD)
    fibonacci = np.array(numbers, np.uint32)
    power = np.arange(pairs - 1, -1, -1) * 2 + 1  # where F(2k) is, for the k pairs that follow each pair
    factors = numbers[2 * pairs], numbers[2 * pairs + 1], numbers[2 * pairs + 2]
    return factors, fibonacci[power + 1], fibonacci[power], fibonacci[power + 2], fibonacci[power + 1]


def _sums(data: bytes, magic: bytes, frame_bytes: int) -> list[tuple[int, int]]:
    """What the words of each frame add to the checksum."""
    import numpy as np  # noqa: PLC0415 - same

    words = np.frombuffer(data, f"{_order(magic)}u4").reshape(-1, frame_bytes // 4).astype(np.uint32)
    first = np.concatenate((words[:, :1], words[:, 6::2]), axis=1)
    second = np.concatenate((words[:, 1:2], words[:, 7::2]), axis=1)
    _, x_one, y_one, x_two, y_two = _weights(frame_bytes - _FRAME.size)
    one = first @ x_one + second @ y_one
    two = first @ x_two + second @ y_two
    return list(zip(one.tolist(), two.tolist(), strict=True))
