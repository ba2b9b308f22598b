"""The large sources to read in slices, and the way their format joins slices.

Whether a source is cut, and where, depends on its content and never on who reads it: one process and a hundred give the
same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

import polars as pl
from msgspec import Struct

from forensics.errors import NotMine
from forensics.formats.rows.out import Out
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.slices import Counted, Slice
from forensics.model import Source
from forensics.registry import Ingester

#: A source above this size may be cut: a run below it stays in memory, where one process is quicker than two.
CUT_FROM_BYTES = 256 << 20


class Join(Protocol):
    """How the slices of one source become its rows."""

    @property
    def issues(self) -> tuple[tuple[str, str, int], ...]:
        """Code, message and count of the losses of the whole source."""
        ...

    def changes(self, number: int, table: str) -> bool:
        """Whether rows of a table change in a slice."""
        ...

    def changed(self, number: int, table: str, rows: pl.DataFrame, first: int) -> pl.DataFrame:
        """Rows of a table in a slice, from row `first` on, put right."""
        ...


class Slicing(Protocol):
    """The interface of a module that reads a format in slices."""

    def cut(self, opened: Opened, counted: Counted) -> tuple[Slice, ...]:
        """Cut a source; none where it is read as one. Raises `NotMine` for another's content.

        `counted` is known of the lines before some places: they are not counted again.
        """
        ...

    def read(self, opened: Opened, out: Out, limits: Limits, part: Slice) -> str:
        """Read one slice and give its message to the others as text."""
        ...

    def joined(self, states: Sequence[str]) -> Join | None:
        """Join slices by their messages; None when the source must be read as one."""
        ...


def slicing_of(one: Ingester) -> Slicing:
    """The module that reads a format in slices."""
    return cast("Slicing", import_module(one.slicing))


def may_be_cut(source: Source) -> bool:
    """Whether a source is large enough for slices."""
    return source.size_bytes > CUT_FROM_BYTES


class Cut(Struct, frozen=True):
    """How a source is cut: the ingester that reads it, and its slices; none where it is read as one."""

    reader: str = ""
    parts: tuple[Slice, ...] = ()


def cut(opened: Opened, candidates: Sequence[Ingester], limits: Limits, counted: Counted) -> Cut:
    """Cut a source as the first of its readers does that can; not where a reader that is asked before takes it.

    Whether it can be cut is asked first: it is seen in a few places, and other readers may look at the whole.
    """
    for number, one in enumerate(candidates):
        if one.slicing:
            try:
                parts = slicing_of(one).cut(opened, counted)
            except NotMine:
                continue
            if not parts or any(_takes(earlier, opened, limits) for earlier in candidates[:number]):
                return Cut()
            return Cut(one.name, parts)
    return Cut()


def _takes(one: Ingester, opened: Opened, limits: Limits) -> bool:
    """Whether a source is of the format of a reader."""
    try:
        one.read(opened, _Probe(), limits)
    except NotMine:
        return False
    except _Taken:
        return True
    return True


class _Taken(BaseException):
    """A reader has something to say: the source is its own."""


class _Probe:
    """Takes nothing: the first word of a reader ends it."""

    def rows(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        raise _Taken(table, columns)

    def issue(self, code: str, message: str, *, byte: int = 0, line: int | None = None, count: int = 1) -> None:
        raise _Taken(code, message, byte, line, count)

    def account(self, *, read_bytes: int = 0, skipped_bytes: int = 0, reason: str = "", records: int = 0) -> None:
        raise _Taken(read_bytes, skipped_bytes, reason, records)

    def format(self, name: str) -> None:
        raise _Taken(name)
