"""Settings that actions speak of, under one name each, from `settings.jsonl`.

A row has `name`, `keys` (a pattern over the last part of a key, or over its last parts where it names a separator; in
lower case and with `_` for `-`), and may have `flags`: keys that are switches, with the value that they stand for when
they are on, and `values`: a pattern whose one group is the value, so that `ds/zero3.json` says 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from forensics.knowledge._rows import rows_of

_NO_FLAGS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Known:
    """One setting: how trainers spell it."""

    name: str
    keys: str
    flags: Mapping[str, str] = field(default_factory=lambda: _NO_FLAGS)
    values: str = ""


@cache
def settings() -> tuple[Known, ...]:
    """Every setting."""
    return tuple(Known(**row) for row in rows_of("settings.jsonl"))
