"""Settings of a run under one name each, however trainers spell them, from `training/settings.jsonl`.

A row has `name`, `keys` (a pattern over the last part of a key, or over its last parts where it names a separator; in
lower case and with `_` for `-`), `source` (who spells it so), and may have `flags`: keys that are switches, with the
value that they stand for when they are on, `values`: a pattern whose one group is the value, so that `ds/zero3.json`
says 3, and `alike`: values that mean another one, or that leave open which, where that is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from msgspec import field

from forensics.knowledge._rows import Row, rows_of

_NO_FLAGS: Mapping[str, str] = MappingProxyType({})


class Known(Row, frozen=True):
    """One setting: how trainers spell it."""

    name: str
    keys: str
    source: str
    flags: Mapping[str, str] = field(default_factory=lambda: _NO_FLAGS)
    values: str = ""
    alike: Mapping[str, str] = field(default_factory=lambda: _NO_FLAGS)


def settings() -> tuple[Known, ...]:
    """Every setting."""
    return rows_of("training/settings.jsonl", Known)


@cache
def setting(name: str) -> Known:
    """Give one setting; raises `KeyError` when the table has no row of that name."""
    return {row.name: row for row in settings()}[name]
