"""The same values without names of people and machines and without secrets, so that every renderer may show them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from forensics.case.identities import Identities, identities_of
from forensics.io.redact import Redactor
from forensics.store.run import Run
from forensics.values import field_names, is_value, replace

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

T = TypeVar("T")
#: Fields that hold words of our own.
_OURS = frozenset({"rule", "role", "state", "shape", "kind", "format", "ingester", "code", "status"})
_WORDLESS = (Enum, int, float, Decimal, date, time, timedelta)


def redacted(value: T, *runs: Run) -> T:
    """Give a report, or any other tree of values, with every text redacted, the same names alike throughout.

    The names that `runs` state of their users and hosts are hidden wherever they are. Raises `TypeError` for a value of
    a kind that is not known, as a text in it would leave unseen.
    """
    return hidden(value, *map(identities_of, runs))


def hidden(value: T, *known: Identities) -> T:
    """Give a tree of values without the names that are known, as `redacted` does.

    Raises `TypeError` for a value of a kind that is not known.
    """
    users, hosts = {u for k in known for u in k.users}, {h for k in known for h in k.hosts}
    return cast("T", _walk(value, Redactor(sorted(users), sorted(hosts))))


def _walk(value: object, redactor: Redactor) -> object:
    if value is None or isinstance(value, _WORDLESS):
        return value
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, bytes):
        return redactor.text(value.decode("utf-8", "backslashreplace")).encode()
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[object, object]", value), redactor)
    if is_value(value):
        return _fields(value, redactor)
    return _many(value, redactor)


def _many(value: object, redactor: Redactor) -> object:
    if isinstance(value, tuple):
        every = cast("tuple[object, ...]", value)
        if every and isinstance(every[0], float):  # points of a curve: many, and without names
            return every
        return tuple(_walk(part, redactor) for part in every)
    if isinstance(value, list):
        return [_walk(part, redactor) for part in cast("list[object]", value)]
    if isinstance(value, frozenset):
        return frozenset(_walk(part, redactor) for part in cast("frozenset[object]", value))
    kind = type(value).__module__.split(".")[0]
    if kind == "numpy" and cast("np.ndarray", value).dtype.kind in "biuf":
        return value
    if kind == "polars":
        return _frame(cast("pl.DataFrame", value), redactor)
    raise TypeError(f"{type(value).__name__} cannot be redacted")


def _mapping(value: Mapping[object, object], redactor: Redactor) -> dict[object, object]:
    """Keys are names as well; two that become alike are numbered, so that no value is lost."""
    found: dict[object, object] = {}
    for key, part in value.items():
        word = _walk(key, redactor)
        name, number = word, 1
        while name in found:
            number += 1
            name = f"{word} ({number})"
        found[name] = _walk(part, redactor)
    return found


def _fields(value: object, redactor: Redactor) -> object:
    changed = {name: _walk(getattr(value, name), redactor) for name in field_names(value) if name not in _OURS}
    return replace(value, **changed)


def _frame(value: pl.DataFrame, redactor: Redactor) -> pl.DataFrame:
    """Columns that may hold text, also within lists and structs; a query gives columns their names."""
    import polars as pl  # noqa: PLC0415 - only a query shows frames

    texts = {
        name: pl.String if isinstance(kind, pl.Categorical | pl.Enum) else kind
        for name, kind in value.schema.items()
        if not (kind.is_numeric() or kind.is_temporal() or kind == pl.Boolean)
    }
    return value.with_columns(
        pl.Series(name, [_walk(cell, redactor) for cell in value[name].to_list()], kind) for name, kind in texts.items()
    )
