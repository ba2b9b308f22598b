"""Files that are known and not read: profiler reports, core dumps, weights, pickles, archives, other trackers' stores.

Each is named with the reason, by its first bytes or, where those say nothing, by its name; never taken for a log. Of
several rows with the same bytes the first whose name fits too is taken, else that with the longest bytes, else the
last. The table is data (`not_read.tsv`: name globs, first bytes, what it is, why it is not read). Text that has such
a name is left to others, save in the folders of other trackers.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

from msgspec import Struct

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.io.tables import table_rows

#: Folders of other trackers: their files are theirs, their own logs too.
_STORES = tuple(f"{before}.{name}/*" for name in ("aim", "neptune", "clearml") for before in ("", "*/"))
_HEAD_BYTES = 4096
_TEXT = bytes({*range(32, 127), 7, 8, 9, 10, 12, 13, 27, *range(0x80, 0x100)})


class Known(Struct, frozen=True):
    """One kind of file: its names, its first bytes with their offsets, what it is, and why it is not read."""

    globs: tuple[str, ...]
    magics: tuple[tuple[int, bytes], ...]
    what: str
    why: str


@cache
def table() -> tuple[Known, ...]:
    """The kinds of file, in the order in which they are tried."""
    return tuple(map(_known, table_rows("forensics.formats", "not_read.tsv")))


def _known(cells: list[str]) -> Known:
    globs, magics, what, why = cells
    return Known(tuple(filter(None, globs.split("|"))), tuple(map(_magic, filter(None, magics.split("|")))), what, why)


def _magic(spelled: str) -> tuple[int, bytes]:
    digits, _, at = spelled.partition("@")
    return int(at or 0), bytes.fromhex(digits)


@ingester("not_read", version=1, sniff=Sniff(path=_STORES, fallback=True), emits=())
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Name one file and skip it; raises `NotMine` for text, and for binary content of no known kind."""
    del limits
    packed = f" ({opened.compression})" if opened.compression else ""
    found = _found(opened.text_head(_HEAD_BYTES) if packed else opened.head(_HEAD_BYTES), opened)
    if found is None:
        raise NotMine("no file of a known kind")
    out.format(f"{found.what}{packed}")
    out.account(skipped_bytes=opened.size_bytes, reason=f"{found.what}{packed}, not read: {found.why}")


def _found(head: bytes, opened: Opened) -> Known | None:
    """The kind of a file: by a folder of its path, else by its bytes, else by its name; text is no known kind."""
    path = opened.source.path
    if (store := next((known for known in table() if _fits(known, path, whole=True)), None)) is not None:
        return store
    if not head or head.startswith((b"\xff\xfe", b"\xfe\xff")) or not head.translate(None, _TEXT):
        return None
    best: tuple[tuple[bool, int, int], Known] | None = None
    for index, known in enumerate(table()):
        longest = max((len(magic) for at, magic in known.magics if _begins(head, at, magic, opened)), default=0)
        named = _fits(known, path, whole=False)
        rank = named, longest, -index if named else index
        if longest and (best is None or rank > best[0]):
            best = rank, known
    if best is not None:
        return best[1]
    return next((known for known in table() if _fits(known, path, whole=False)), None)


def _fits(known: Known, path: str, *, whole: bool) -> bool:
    """Whether a name fits, or with `whole` the path; both without the ending of a compressed file."""
    plain = path.lower().removesuffix(".gz").removesuffix(".zst")
    wanted = plain if whole else plain.rsplit("/", 1)[-1]
    return any(fnmatchcase(wanted, glob) for glob in known.globs if ("/" in glob) is whole)


def _begins(head: bytes, at: int, magic: bytes, opened: Opened) -> bool:
    if at < 0:
        return opened.size_bytes >= -at and opened.tail(-at)[: len(magic)] == magic
    return head[at : at + len(magic)] == magic
