"""From one source to its tables: choose the ingester by magic, name, then fallback, and never die of an input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from fnmatch import translate
from functools import cache, partial
from itertools import chain
from pathlib import Path

import polars as pl
from msgspec import Struct

from forensics.errors import InputError, NotMine, PlaceError
from forensics.io.budget import WorkExceeded
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.slices import Slice
from forensics.model import UNREADABLE, FileCoverage, FileStatus, Issue, Source
from forensics.patterns import compiled
from forensics.registry import Ingester
from forensics.store.sink import SourceSink
from forensics.store.slices.cutting import slicing_of
from forensics.values import replace

_COMPRESSED = (".gz", ".zst")
_HEAD_BYTES = 64
#: Smaller files count as they are: runs of 100,000 of them are not asked for their names twice.
_SMALL_BYTES = 64 << 10
_WORD_CHARS = 300
_WILD = frozenset("*?[")
#: Issues of a source that may be gone when it is read again.
_PASSING = frozenset({"ingester-failed", "unreadable", "read-error", "shrank"})
#: What hostile input, its disk or a bug of a reader may raise; a panic of polars is no Exception.
FAULTS = (Exception, pl.exceptions.PanicException)


def candidates(source: Source, head: bytes, ingesters: Sequence[Ingester]) -> Iterator[Ingester]:
    """Ingesters to ask, in order: by the magic the file begins with, by its path, by its name, fallbacks."""
    name = source.path.rsplit("/", 1)[-1].lower()
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    named = ((i, i.sniff.glob) for i in ingesters if i.sniff.glob and not i.sniff.fallback)
    by_magic = (i for i in ingesters if i.sniff.magic and head.startswith(i.sniff.magic))
    by_path = (i for i in ingesters if i.sniff.path and _globs(i.sniff.path).fit(source.path))
    by_name = (i for i, globs in named if _globs(globs, lower=True).fit(name))
    fallbacks = (i for i in ingesters if i.sniff.fallback)
    seen: set[str] = set()
    for one in chain(by_magic, by_path, by_name, fallbacks):  # most files equal the first one's
        if one.name not in seen:
            seen.add(one.name)
            yield one


class _Globs(Struct, frozen=True):
    """Some globs: a word with stars before or behind it needs no pattern, and a file is asked for 190 globs."""

    whole: frozenset[str]
    begins: tuple[str, ...]
    ends: tuple[str, ...]
    within: tuple[str, ...]
    others: re.Pattern[str] | None

    def fit(self, name: str) -> bool:
        """Whether one of them fits a name."""
        return (
            name in self.whole
            or name.startswith(self.begins)
            or name.endswith(self.ends)
            or any(word in name for word in self.within)
            or (self.others is not None and self.others.match(name) is not None)
        )


@cache
def _globs(globs: tuple[str, ...], *, lower: bool = False) -> _Globs:
    form: dict[tuple[bool, bool] | None, list[str]] = {}
    for glob in (glob.lower() if lower else glob for glob in globs):
        word = glob.strip("*")
        plain = word and _WILD.isdisjoint(word)
        form.setdefault((glob[0] == "*", glob[-1] == "*") if plain else None, []).append(word if plain else glob)
    begins, ends, within = (tuple(form.get(key, ())) for key in ((False, True), (True, False), (True, True)))
    others = "|".join(map(translate, form.get(None, ())))
    return _Globs(frozenset(form.get((False, False), ())), begins, ends, within, compiled(others) if others else None)


def held_bytes(source: Source, ingesters: Sequence[Ingester], limits: Limits) -> int:
    """Memory that the rows of a file may take, as the first reader says that its name calls for and that knows."""
    if source.size_bytes < _SMALL_BYTES:
        return source.size_bytes
    named = candidates(source, b"", ingesters)
    growths = (one.device_growth if limits.device_only else one.growth for one in named)
    growth = next((one for one in growths if one != 1), 1.0)
    packed = source.path.lower().endswith(_COMPRESSED)
    return int(source.size_bytes * (max(growth, 1.0) if packed else growth))


def fill(
    opening: AbstractContextManager[Opened],
    source: Source,
    ingesters: Sequence[Ingester],
    limits: Limits,
    folder: Path | None = None,
) -> tuple[SourceSink, FileCoverage]:
    """Read one source into a sink with the first ingester that does not answer `NotMine`.

    It is the boundary of a source: whatever is wrong with the file, its disk or its reader costs this file alone, as an
    issue and as bytes that count as lost. A reader that failed never gives a file that is `read`. Raises `PlaceError`
    when the machine refuses the place that rows are written to, or any further file.
    """
    try:
        with opening as opened:
            return _read(opened, ingesters, limits, folder)
    except (PlaceError, KeyboardInterrupt, SystemExit):
        raise
    except FAULTS as error:
        sink = SourceSink(source, limits)
        sink.issue("unreadable", _words(error))
        return sink, skipped(source, f"{UNREADABLE}: {_words(error)}")


def fill_slice(
    opened: Opened, part: Slice, one: Ingester, limits: Limits, folder: Path
) -> tuple[SourceSink, FileCoverage, str]:
    """Read one slice of a source as `fill` reads a source; it hands nothing over where it failed.

    Raises `PlaceError` when the machine refuses the place that rows are written to.
    """
    sink = SourceSink(replace(opened.source, size_bytes=part.size_bytes), limits, folder=folder, budget=opened.budget)
    told: list[str] = []
    try:
        failed = _attempt(one.name, lambda: told.append(slicing_of(one).read(opened, sink, limits, part)), sink)
    except NotMine:
        failed = "it is of another format"
    failed = failed or _settled(one, sink)
    broken = failed or opened.lost or opened.budget.ended
    return sink, sink.coverage(one.name, failed=failed, lost=opened.lost), "" if broken or not told else told[0]


def _read(
    opened: Opened, ingesters: Sequence[Ingester], limits: Limits, folder: Path | None
) -> tuple[SourceSink, FileCoverage]:
    for one in candidates(opened.source, opened.head(_HEAD_BYTES), ingesters):
        sink = SourceSink(opened.source, limits, folder=folder, budget=opened.budget)
        try:
            failed = _attempt(one.name, partial(one.read, opened, sink, limits), sink)
        except NotMine:
            continue
        failed = failed or _settled(one, sink)
        if (lost := opened.lost) is not None and all(issue.code != lost.code for issue in sink.issues):
            sink.issue(lost.code, lost.why, byte=lost.byte)
        return sink, sink.coverage(one.name, failed=failed, lost=lost)
    if opened.lost is not None:
        raise InputError(opened.lost.why)
    return SourceSink(opened.source, limits), skipped(opened.source, "no ingester knows this content")


def _attempt(name: str, read: Callable[[], None], sink: SourceSink) -> str:
    """Why the reader failed; nothing where it did.

    Raises `NotMine` when the content is another format.
    """
    try:
        read()
    except (NotMine, PlaceError, KeyboardInterrupt, SystemExit):
        raise
    except WorkExceeded:
        pass  # stated below, with those that a reader caught
    except InputError as error:
        sink.issue("damaged", error.message)
        return error.message
    except FAULTS as error:
        why = f"{name} failed: {_words(error)}"
        sink.issue("ingester-failed", why)
        return why
    finally:
        sink.settle_work()
    return ""


def lasting(issues: Iterable[Issue]) -> bool:
    """Whether the same bytes would give the same rows again: not where the disk, the machine or a bug ended it."""
    return not any(issue.code in _PASSING for issue in issues)


def _settled(one: Ingester, sink: SourceSink) -> str:
    """Why the last rows of a reader cannot be rows of their tables; nothing where they all are."""
    why = ""
    for table in sink.waiting:
        try:
            sink.settle(table)
        except PlaceError:
            raise
        except FAULTS as error:
            why = f"{one.name} failed: {_words(error)}"
            sink.issue("ingester-failed", why)
    return why


def _words(error: BaseException) -> str:
    if isinstance(error, InputError):
        return error.message
    return f"{type(error).__name__}: {str(error)[:_WORD_CHARS]}"


def skipped(source: Source, reason: str) -> FileCoverage:
    """Give the account of a source that was not read."""
    return FileCoverage(source.path, source.size_bytes, 0, source.size_bytes, FileStatus.SKIPPED, reason=reason)
