"""Many runs in one place: found by their folders, so that each is read and judged by itself, and then let go."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from forensics import pipeline
from forensics.case.runs import parts
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.named import Where, place_of
from forensics.io.places.part import part_of
from forensics.io.places.place import Place, Seen
from forensics.knowledge.paths import is_part_of_job
from forensics.patterns import lazily

#: From so many folders on they are not read together, which takes the memory of all of them: 10,000 small runs, 2.5 GB.
MANY = 16
_NUMBER = lazily(r"(\d+)")


class Member(Struct, frozen=True):
    """One folder of a fleet: its place, and the size of what it holds."""

    place: Place
    size_bytes: int


class Fleet(Struct, frozen=True):
    """The runs of a place in the natural order of their names, why they are runs, and the files beside them."""

    members: tuple[Member, ...]
    why: str
    beside: tuple[str, ...] = ()


def fleet_of(where: Where, limits: Limits = DEFAULT) -> Fleet | None:
    """Tell the runs of a place apart by its folders; None where it is one run, or holds few.

    Six of the folders, in pairs of neighbours, are read together: only where these are runs of their own, as in a place
    that holds nothing else, all are. Raises `UsageError` when there is no such place.
    """
    place = place_of(where)
    found = place.looked_through(limits)
    files, folders = found.files, [""]
    while len(names := _folders(files, folders[-1])) == 1 and not _beside(files, folders[-1]):
        folders.append(f"{folders[-1]}{next(iter(names))}/")
    above = folders[-1]
    if len(names) < MANY or any(map(is_part_of_job, names)):
        return None
    parent = place.below(above.rstrip("/")) if above else place
    ordered = sorted(names, key=_natural)
    half = len(ordered) // 2
    sample = {*ordered[:2], *ordered[half : half + 2], *ordered[-2:]}
    told = parts(pipeline.ingest_run(part_of(parent, frozenset(sample)), limits=limits))
    if not told or not {part.folder for part in told} <= sample or any(part.tracked for part in told):
        return None
    members = tuple(Member(parent.below(name), names[name]) for name in ordered)
    return Fleet(members, told[0].why, _beside(files, above))


def _folders(files: list[Seen], above: str) -> Counter[str]:
    """The folders right below a folder, each with the bytes that it holds."""
    names: Counter[str] = Counter()
    for seen in files:
        name, slash, _ = seen.path[len(above) :].partition("/")
        if slash:
            names[name] += seen.size_bytes
    return names


def _beside(files: list[Seen], above: str) -> tuple[str, ...]:
    return tuple(seen.path for seen in files if "/" not in seen.path[len(above) :])


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(name))
