"""The same values without names of people and machines and without secrets, so that every renderer may show them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar, cast

from forensics.io.redact import Redactor
from forensics.signals.identities import identities_of
from forensics.store.run import Run

T = TypeVar("T")
#: Fields that hold words of our own.
_OURS = frozenset({"rule", "role", "state", "shape", "kind", "format", "ingester", "code", "status"})


def redacted(value: T, run: Run) -> T:
    """Give a report, or any other tree of frozen values, with every text redacted, the same names alike throughout."""
    known = identities_of(run)
    return cast("T", _walk(value, Redactor(known.users, known.hosts)))


def _walk(value: object, redactor: Redactor) -> object:  # noqa: PLR0911 - one answer for each kind of value
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, tuple):
        if value and isinstance(value[0], float):  # points of a curve: many, and without names
            return cast("object", value)
        return tuple(_walk(v, redactor) for v in cast("tuple[object, ...]", value))
    if isinstance(value, Mapping):
        return {k: _walk(v, redactor) for k, v in cast("Mapping[str, object]", value).items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: _walk(getattr(value, f.name), redactor)
            for f in dataclasses.fields(value)
            if f.init and f.name not in _OURS
        }
        return dataclasses.replace(value, **changed)
    return value
