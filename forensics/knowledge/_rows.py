"""Rows of a table of knowledge: a JSON object for each line of a file of this package, as values of one type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

T = TypeVar("T")


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """What a row of a table is: its fields are those of the table, no others."""


def rows_of(name: str, kind: type[T]) -> tuple[T, ...]:
    """Give the rows of one file, or of every file of a folder in the order of their names; each is read once.

    Raises `msgspec.ValidationError` for a line that is no row of this kind.
    """
    return _kept(name, kind)


def bare_rows(name: str) -> tuple[Mapping[str, Any], ...]:
    """Give the rows of a file as they are written, where only some cells are read."""
    return tuple(_read(name, dict[str, Any]))


@cache
def _kept(name: str, kind: type[Any]) -> tuple[Any, ...]:
    return tuple(_read(name, kind))


def _read(name: str, kind: type[T]) -> Iterator[T]:
    place = files("forensics.knowledge") / name
    every = sorted(place.iterdir(), key=lambda p: p.name) if place.is_dir() else [place]
    read = Decoder(kind)
    tables = (file for file in every if file.name.endswith(".jsonl"))
    return (row for file in tables for row in read.decode_lines(file.read_bytes()))
