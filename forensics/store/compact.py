"""From the rows of many sources to few files: large files get a second name, small ones are written anew together.

A query of polars costs a plan for each file, and a check costs an open and a hash: a run of a thousand small files has
one file of each table, and a change of one of them costs the file with its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import polars as pl

from forensics.store import manifest, parts
from forensics.store.manifest import Part
from forensics.store.parts import Piece
from forensics.store.schema import TABLES

#: A file with a fourth of the rows that it may have stays as it is: to write it again would cost more than it saves.
_LARGE = 4


def compacted(home: Path, work: Path, sources: Sequence[Sequence[Piece]], most_rows: int) -> list[Part]:
    """Bring the rows of all sources into `work`, in order, in files of about `most_rows` rows; give these.

    Raises `InputError` when a file is not what its manifest says any more; `PlaceError` when the place cannot be
    written to.
    """
    made: list[Part] = []
    for table, pieces in _by_table(sources):
        for number, group in enumerate(_files(pieces, most_rows)):
            path = work / manifest.file_name(table, number)
            if len(group) == 1 and group[0].is_whole:
                parts.link(home, f"{group[0].folder}/{group[0].file}", path)
                made.append(group[0].part)
            else:
                made.append(parts.written(pl.concat(_rows(home, group), rechunk=True), path, table))
    return made


def scanned(home: Path, sources: Sequence[Sequence[Piece]]) -> Iterator[tuple[str, pl.LazyFrame]]:
    """Give the rows of all sources lazily, where they are, in order."""
    for table, pieces in _by_table(sources):
        for piece in pieces:
            yield table, parts.scanned_file(home / piece.folder / piece.file).slice(piece.first, piece.rows)


def _by_table(sources: Sequence[Sequence[Piece]]) -> Iterator[tuple[str, Iterator[Piece]]]:
    found: dict[str, list[Piece]] = {}
    for own in sources:
        for piece in own:
            found.setdefault(piece.part.table, []).append(piece)
    return ((table, _joined(found[table])) for table in TABLES if table in found)


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbours in one file as one piece."""
    last: Piece | None = None
    for piece in pieces:
        if last is not None and (last.folder, last.file, last.first + last.rows) == (
            piece.folder,
            piece.file,
            piece.first,
        ):
            last = Piece(last.folder, last.file, last.part, last.first, last.rows + piece.rows)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _files(pieces: Iterable[Piece], most_rows: int) -> Iterator[list[Piece]]:
    """The pieces of each file: a large whole file alone, else as many as fit."""
    waiting: list[Piece] = []
    rows = 0
    for piece in pieces:
        is_large = piece.is_whole and piece.rows >= most_rows // _LARGE
        if waiting and (is_large or rows + piece.rows > most_rows):
            yield waiting
            waiting, rows = [], 0
        if is_large:
            yield [piece]
        else:
            waiting.append(piece)
            rows += piece.rows
    if waiting:
        yield waiting


def _rows(home: Path, group: Sequence[Piece]) -> Iterator[pl.DataFrame]:
    """The rows of pieces, each file opened once for its neighbours."""
    for _, several in groupby(group, lambda piece: (piece.folder, piece.file)):
        pieces = list(several)
        data = parts.whole(home, pieces[0])
        yield from (parts.rows_of(home, piece, data) for piece in pieces)
