"""Finds the files of a run: those that can be read, and why the others cannot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct

from forensics.errors import InputError
from forensics.io.limits import DEFAULT, Limits
from forensics.io.local_ranks import with_global_ranks, with_heads
from forensics.io.places.local import unicode_path
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Found, Place, Seen
from forensics.io.rank_words import words_before
from forensics.model import EMPTY, UNREADABLE, FileCoverage, Issue, Source
from forensics.patterns import lazily
from forensics.values import replace

#: First line of a pointer file, from the git-lfs specification, which also bounds it to 1,024 bytes.
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = range(len(_LFS), 1025)
_RANK = lazily(r"(?:^|[^a-z0-9])(?:global|local|world)?[_-]?rank[_=.-]?(\d{1,6})(?![0-9])", re.IGNORECASE)
_BEFORE = lazily(r"([a-z0-9]+)[_.=-]*$", re.IGNORECASE)
_ATTEMPT = lazily(r"(?:attempt|re-?start|re-?try|try|resume|requeue)[_-]?(\d{1,6})", re.IGNORECASE)
_LOCAL = lazily(r"\d{1,6}")
_LOG = lazily(r"[^.]*|.*\.(?:log|txt|out|err|std(?:out|err))|(?:std)?(?:out|err)\.\d{1,6}", re.IGNORECASE)
_HEAD_BYTES = 4096
_TABLE = lazily(r".*\.(?:csv|tsv|jsonl|ndjson)", re.IGNORECASE)


class Discovery(Struct, frozen=True):
    """What a place holds: sources in the order of their paths, what was passed over with its reason, and issues.

    `empty` are files without a byte, which are `skipped`, too: that a process printed nothing is evidence.
    """

    place: Place
    sources: tuple[Source, ...] = ()
    empty: tuple[Source, ...] = ()
    skipped: tuple[FileCoverage, ...] = ()
    issues: tuple[Issue, ...] = ()

    @property
    def listed(self) -> list[tuple[str, int, int]]:
        """Path, size in bytes and time (ns) of every file, as the table `sources` will have them."""
        seen = {source.path: (source.size_bytes, source.mtime_ns) for source in (*self.sources, *self.empty)}
        passed = {row.source: (row.size_bytes, 0) for row in self.skipped}
        return [(path, *told) for path, told in (passed | seen).items()]


def discover(where: Where, limits: Limits = DEFAULT) -> Discovery:
    """Find the files of a run without following links or opening anything but regular files.

    `where` is a folder, a prefix of a bucket, or one file, which then is the only source and is called by its name.
    Links, pipes, sockets, devices, empty files, git-lfs pointers and what cannot be read are `skipped` rows with a
    reason; a link inside the run is skipped because its target is read where it is. Raises `UsageError` when the place
    does not exist or cannot be looked at; `PlaceError` when its entries cannot be listed.
    """
    place = place_of(where)
    found = place.looked_through(limits)
    sources: list[Source] = []
    found.files.sort(key=lambda seen: seen.path)
    for seen in _once(found.files, found):
        if reason := _reason(place, seen):
            found.skip(unicode_path(seen.path), seen.size_bytes, reason)
        if not reason or (not seen.size_bytes and not found.is_file):
            sources.append(_source(seen))
    skipped = tuple(sorted(found.skipped, key=lambda row: row.source))
    named = sources if found.is_file else with_global_ranks(place, _numbered(place, with_heads(place, sources)))
    full, empty = (tuple(one for one in named if bool(one.size_bytes) is has) for has in (True, False))
    return Discovery(place, full, empty, skipped, tuple(found.issues))


def _once(files: Iterable[Seen], found: Found) -> Iterator[Seen]:
    """Each file once: a second name of the same file would count its records twice."""
    seen_as: dict[tuple[int, int], str] = {}
    for seen in files:
        if seen.node is not None and seen_as.setdefault(seen.node, seen.path) != seen.path:
            found.skip(unicode_path(seen.path), seen.size_bytes, "link")
        else:
            yield seen


def _reason(place: Place, seen: Seen) -> str:
    """Why a regular file is passed over, or nothing."""
    if seen.size_bytes == 0:
        return EMPTY
    if refused := place.refused(seen.path):
        return refused
    try:
        return "git-lfs pointer" if _is_pointer(place, seen) else ""
    except InputError as error:
        return f"{UNREADABLE}: {error.message}"
    except OSError as error:
        return f"{UNREADABLE}: {error.strerror or type(error).__name__}"


def _is_pointer(place: Place, seen: Seen) -> bool:
    if seen.size_bytes not in _LFS_BYTES:
        return False
    with place.opened(seen.path) as disk:
        return disk.pread(len(_LFS), 0) == _LFS


def _source(seen: Seen) -> Source:
    path = seen.path
    name = unicode_path(path)
    disk_path = path if path != name else None
    return Source(name, seen.size_bytes, seen.mtime_ns, rank_of(path), attempt_of(path), disk_path)


# The rank and the attempt that a launcher wrote into a path: `attempt_1/3/stdout.log`, `rank_3/`, `rank0.json`.


def _rank_in(part: str) -> int | None:
    for match in _RANK.finditer(part):
        before = _BEFORE.search(part[: match.start() + 1])
        if before is None or before[1].lower() not in words_before("other"):
            return int(match[1])
    return None


def _numbered(place: Place, sources: list[Source]) -> list[Source]:
    """Give the logs of processes their ranks, where siblings that differ in a number alone have most from 0 on."""
    places = {one.path: hits[-1] for one in sources if (hits := _processes(place, one))}
    numbers: dict[str, set[int]] = {}
    for path, hit in places.items():
        for name in _siblings(path, hit):
            numbers.setdefault(name, set()).add(int(hit[1]))
    whole = {name for name, told in numbers.items() if len(told) > 1 and 0 in told and max(told) < 2 * len(told)}
    ranks = {path: int(hit[1]) for path, hit in places.items() if _siblings(path, hit) & whole}
    # what else is named by the word and the number of a log speaks of its process: `describe_worker-3.txt`
    known = {places[path][0].lower().lstrip("/._-"): rank for path, rank in ranks.items()}
    beside = {path: known.get(hit[0].lower().lstrip("/._-")) for path, hit in places.items()}
    named = {path: rank for path, rank in (beside | ranks).items() if rank is not None}
    return [replace(one, rank=named[one.path]) if one.path in named else one for one in sources]


def _processes(place: Place, one: Source) -> list[re.Match[str]]:
    """Where a path says the number of a process; a worker that writes a table of losses is no data loader's.

    `r3.csv` may be a run: it is a rank's where the table has the time of a collective.
    """
    name = one.path.rpartition("/")[2]
    is_log, is_table = _LOG.fullmatch(name), _TABLE.fullmatch(name)
    if one.rank is not None or not (is_log or is_table):
        return []
    found = list(_process(("rank", "process", "log") if is_log else ("rank", "process")).finditer(one.path))
    for word, told in (("log", "loss"), ("letter", "collective")):
        if is_table and not found and (numbers := list(_process((word,)).finditer(one.path))):
            found = numbers if _names(place, one, told) else []
    return found


def _names(place: Place, one: Source, what: str) -> bool:
    """Whether the head of a table has a word of a kind."""
    try:
        with place.opened(one.disk_path or one.path) as disk:
            head = disk.pread(_HEAD_BYTES, 0) if one.size_bytes else b""
    except (InputError, OSError):
        return False
    return bool(_words(what).search(head.decode("utf-8", "replace")))


@cache
def _words(what: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(sorted(words_before(what)))})(?![^\W_])")


@cache
def _process(of: tuple[str, ...]) -> re.Pattern[str]:
    words, named = "|".join(sorted(words_before(*of))), "|".join(sorted(words_before("task")))
    return re.compile(rf"(?i)(?:^|[^a-z0-9])(?:(?:{words})[_.-]?|(?:{named})\.)(\d{{1,6}})(?=[/._-]|$)")


def _siblings(path: str, hit: re.Match[str]) -> set[str]:
    """The path without the number of the process; its folder may hold that number, too: `device3/log3.log`."""
    return {f"{path[: hit.start(1)]}*{path[hit.end(1) :]}", re.sub(rf"(?<![0-9]){hit[1]}(?![0-9])", "*", path)}


def attempt_of(path: str) -> int | None:
    """The launcher's attempt that a folder of the path names, 0-based as printed, or None."""
    for part in path.split("/")[:-1]:
        if match := _ATTEMPT.fullmatch(part):
            return int(match[1])
    return None


def rank_of(path: str) -> int | None:
    """The rank that the path names, the deepest part first, or None; below `attempt_N` a bare number is a rank."""
    parts = path.split("/")
    for part in reversed(parts):
        if (rank := _rank_in(part)) is not None:
            return rank
    for above, part in pairwise(parts[:-1]):
        if _ATTEMPT.fullmatch(above) and _LOCAL.fullmatch(part):
            return int(part)
    return None
