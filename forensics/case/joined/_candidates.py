"""Which pairs of files may be stores of one process, in the order in which they are compared.

A run of n files has n² pairs, nearly all of them of two ranks, two nodes or two parts of one log. Files are therefore
kept by folder, kind, rank and the form of their names, and the partners of a file are looked up, not searched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from forensics.case.joined._strands import (
    KINDS,
    Held,
    Unit,
    is_measured,
    kind_of,
    may_be_one,
    preference,
    process_of,
    without_numbers,
)

_Place = tuple[tuple[str, ...], str, int | None]


class _Form(Struct, frozen=True):
    """What decides with whom a file can be one: its measured metrics, and its path without numbers."""

    measured: frozenset[str]
    path: str


class _File(Struct, frozen=True):
    """One unit: its kind, folders and name, the process that they name, and how many `records` its longest series has.

    `tag` is the process, or the name without numbers.
    """

    unit: Unit
    kind: str
    folders: tuple[str, ...]
    base: str
    process: str | None
    tag: str
    form: _Form
    records: int


class _Files(Struct):
    """Units that hold a measured metric, the better store first, by source and by place.

    `near` has each file under its folder and all above it, with its kind and rank, then by tag and form. `first` is the
    lowest rank that logs, `deepest` remembers how many folders a source shares with its nearest partner of a kind.
    """

    first: int
    every: list[_File] = field(default_factory=list[_File])
    of_source: dict[str, list[_File]] = field(default_factory=dict[str, list[_File]])
    near: dict[_Place, dict[str, dict[_Form, list[int]]]] = field(
        default_factory=dict[_Place, dict[str, dict[_Form, list[int]]]]
    )
    deepest: dict[tuple[str, str], int | None] = field(default_factory=dict[tuple[str, str], int | None])


def candidates(units: Mapping[Unit, Sequence[Held]], gone: Collection[Unit]) -> Iterator[tuple[Unit, Unit]]:
    """Give pairs of files that can be stores of one process: the longest first, in each the better store first.

    A pair is left out where either file has another partner of the same kind nearer to it. Files that are in `gone`
    when their turn comes are passed over.
    """
    files = _files(units)
    paired = [i for i, one in enumerate(files.every) if any(_depth_of(files, one, kind) is not None for kind in KINDS)]
    for records in sorted({files.every[i].records for i in paired}, reverse=True):
        if any(files.every[i].records == records and files.every[i].unit not in gone for i in paired):
            yield from _of_length(files, [i for i in paired if files.every[i].records <= records], records, gone)


def _of_length(
    files: _Files, paired: Sequence[int], records: int, gone: Collection[Unit]
) -> Iterator[tuple[Unit, Unit]]:
    """Pairs whose longer file has so many records."""
    for i in paired:
        a = files.every[i]
        for j in sorted(_partners(files, i)) if a.unit not in gone else ():
            b = files.every[j]
            if b.records <= records and records in {a.records, b.records} and a.unit not in gone:
                yield a.unit, b.unit


def _partners(files: _Files, i: int) -> Iterator[int]:
    """Files behind this one in order, of each kind those that are as near as any, seen from both sides."""
    a = files.every[i]
    for kind in KINDS:
        depth = _depth_of(files, a, kind)
        for j in _allowed(files, a, kind, depth) if depth is not None else ():
            back = _depth_of(files, files.every[j], a.kind) if j > i else None
            if back is not None and _shared(a, files.every[j]) >= back:
                yield j


def _depth_of(files: _Files, one: _File, kind: str) -> int | None:
    """How many folders a source shares with its nearest possible partner of a kind; None where it has none."""
    key = one.unit[0], kind
    if key not in files.deepest:
        own = files.of_source[one.unit[0]]
        depths = range(len(one.folders), -1, -1)
        found = (d for d in depths if any(True for unit in own for _ in _allowed(files, unit, kind, d)))
        files.deepest[key] = next(found, None)
    return files.deepest[key]


def _allowed(files: _Files, a: _File, kind: str, depth: int) -> Iterator[int]:
    """Files of a kind, within the first `depth` folders of this one, that can be of the same process."""
    own = a.unit[2]
    also: tuple[int | None, ...] = (files.first,) if own is None else (None,) if own == files.first else ()
    for rank in (own, *also):
        by_tag = files.near.get((a.folders[:depth], kind, rank), {})
        for form, many in (pair for tag in _tags(a, kind, by_tag) for pair in by_tag[tag].items()):
            if not form.measured & a.form.measured:
                continue
            if kind != a.kind:
                yield from many
            elif form.path != a.form.path or a.process is not None:
                yield from (j for j in many if _are_two(a, files.every[j]))


def _tags(a: _File, kind: str, by_tag: Mapping[str, object]) -> Iterator[str]:
    """The tags under which partners lie: of its own kind only those of its process, or other names."""
    if kind != a.kind:
        yield from by_tag
    elif a.process is not None:
        yield from (a.tag,) if a.tag in by_tag else ()
    else:
        yield from (tag for tag in by_tag if tag != a.tag or any(letter.isdecimal() for letter in a.base))


def _are_two(a: _File, b: _File) -> bool:
    return a.unit[0] != b.unit[0] and may_be_one(a.unit[0], b.unit[0])


def _shared(a: _File, b: _File) -> int:
    """How many folders two paths share."""
    pairs = enumerate(zip(a.folders, b.folders, strict=False))
    return next((i for i, (left, right) in pairs if left != right), min(len(a.folders), len(b.folders)))


def _files(units: Mapping[Unit, Sequence[Held]]) -> _Files:
    ranks = [strand.rank for own in units.values() for strand in own if strand.rank is not None]
    files = _Files(min(ranks, default=0))
    for unit in sorted(units, key=lambda u: (*preference(u[0]), str(u))):
        own = [s for s in units[unit] if is_measured(s.name)]
        if not own:
            continue
        *folders, base = unit[0].split("/")
        kind, process = kind_of(unit[0]), process_of(unit[0])
        form = _Form(frozenset(s.name for s in own), without_numbers(unit[0]) if process is None else "")
        tag = without_numbers(base) if process is None else process
        one = _File(unit, kind, tuple(folders), base, process, tag, form, max(len(s) for s in own))
        for depth in range(len(folders) + 1):
            place = files.near.setdefault((one.folders[:depth], kind, unit[2]), {})
            place.setdefault(tag, {}).setdefault(form, []).append(len(files.every))
        files.every.append(one)
        files.of_source.setdefault(unit[0], []).append(one)
    return files
