"""What a target is, what it is given, what it gives back, and the walk that finds the targets there are.

A target is a module of `targets/` whose name does not begin with `_`, with one value `TARGET`. It turns points into
bytes; it opens no file and knows no terminal. Only the module that is named is imported.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

import polars as pl
from msgspec import Struct, field

from forensics.export import targets


class Selection(Struct, frozen=True):
    """The points to write: rows of the table `metrics`, in the order (source, attempt, rank, seq).

    `wide` asks for one row per record in place of one per point. `exits` are exit codes by source, `config` the JSON
    texts of the run's configuration by key.
    """

    run: str
    points: pl.DataFrame
    wide: bool = False
    exits: Mapping[str, int] = field(default_factory=dict[str, int])
    config: Mapping[str, str] = field(default_factory=dict[str, str])


class File(Struct, frozen=True):
    """One file to write; `path` is relative to the place asked for, and empty for a target of a single file."""

    path: str
    data: bytes


class Export(Struct, frozen=True):
    """The files of an export, and in words what the target could not hold as it was (`notes`)."""

    files: tuple[File, ...]
    notes: tuple[str, ...] = ()


class Target(Struct, frozen=True):
    """A way to write points: a single file, or a `folder` of them; `wide` when it can write one row per record.

    `opening` are lines to copy that open what was written: PLACE stands for it in a shell, FILE in Python.
    """

    name: str
    write: Callable[[Selection], Export]
    opening: tuple[str, ...] = ()
    folder: bool = False
    wide: bool = False


def names() -> tuple[str, ...]:
    """Names of the targets, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(targets.__path__) if not m.name.startswith("_")))


def load(name: str) -> Target:
    """Import one target; raises `ImportError` when the target, or a package that it writes with, is not there."""
    return cast("Target", import_module(f"{targets.__name__}.{name}").TARGET)
