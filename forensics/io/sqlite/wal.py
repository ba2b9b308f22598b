"""Write-ahead logs of SQLite: the pages that committed transactions left there, as bytes; no SQL is ever run.

A writer that is killed leaves its last transactions in `<database>-wal` only. SQLite itself would run recovery on the
files, write to them, and evaluate the schema; here the log is a map from pages to where their last committed bytes
begin. A frame counts when it has the log's salts and the checksum over all frames up to it holds; it is committed when
a frame that ends a transaction follows or is reached. What was written before the log began anew has other salts: its
pages are in the database.

Layout: sqlite.org, "WAL-mode File Format", sections 2.1 to 2.4.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from msgspec import Struct, field

Read = Callable[[int, int], bytes]

MAGICS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_VERSION = 3_007_000
_HEADER = struct.Struct(">4s3I8s2I")
_FRAME = struct.Struct(">2I8s2I")
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


def log_of(read: Read, size_bytes: int) -> Log:
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
    end = good = _HEADER.size
    db_pages = 0
    for number, commit in _frames(read, page_bytes, magic, salts, (sums[0], sums[1])):
        waiting[number] = end + _FRAME.size
        end += _FRAME.size + page_bytes
        if commit:
            pages.update(waiting)
            waiting.clear()
            good, db_pages = end, commit
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


def _frames(
    read: Read, page_bytes: int, magic: bytes, salts: bytes, state: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Page and commit of the frames in order, up to the first whose salts or checksum are not right."""
    at, frame_bytes = _HEADER.size, _FRAME.size + page_bytes
    while len(data := read(at, frame_bytes)) == frame_bytes:
        number, commit, salt, *checksum = _FRAME.unpack_from(data)
        state = _checksum(data[_FRAME.size :], magic, _checksum(data[:8], magic, state))
        if not number or salt != salts or tuple(checksum) != state:
            return
        yield number, commit
        at += frame_bytes


def _checksum(data: bytes, magic: bytes, state: tuple[int, int]) -> tuple[int, int]:
    """The checksum of SQLite over pairs of words, whose byte order the magic tells."""
    one, two = state
    for first, second in struct.iter_unpack(">2I" if magic == MAGICS[1] else "<2I", data):
        one = (one + first + two) & _WORD
        two = (two + second + one) & _WORD
    return one, two
