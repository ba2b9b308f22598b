"""Values: frozen fields under names, compared by what they hold.

What others see (`model.py`, `action.py`, `figure.py`, thresholds of installed rules) are data classes.
What is made and read inside are Structs of msgspec, which are the same to work with: Python writes and compiles the
methods of a data class anew at each start, 0.5 ms for each, a Struct has them ready and takes 0.01 ms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

T = TypeVar("T")


def is_value(value: object) -> bool:
    """Whether something has fields under names: a data class or a Struct, and not the class itself."""
    return not isinstance(value, type) and (isinstance(value, Struct) or dataclasses.is_dataclass(value))


def field_names(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any value, any class of values
    """Give the names of the fields of a value or of its class, in their order."""
    names = getattr(value, "__struct_fields__", None)
    return cast("tuple[str, ...]", names) if names is not None else tuple(f.name for f in dataclasses.fields(value))


def replace(value: T, /, **changes: Any) -> T:  # noqa: ANN401 - the types of its fields
    """Give the value with other contents of some fields, as `copy.replace` of Python 3.13 does."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return cast("T", dataclasses.replace(cast("Any", value), **changes))


def named(value: object, names: str) -> dict[str, Any]:
    """Give fields of a value under other names, plain, in the order of `names`.

    A word is `name`, or `name=path` where the code has it elsewhere, None behind a part of the path that is None;
    `name?` gives None for what is empty.
    """
    found: dict[str, Any] = {}
    for word in names.split():
        name, _, path = word.partition("=")
        held = value
        for part in (path or name.rstrip("?")).split("."):
            held = getattr(held, part) if held is not None else None
        found[name.rstrip("?")] = (plain(held) or None) if "?" in name else plain(held)
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - any field of any value
    """Give what JSON knows: the value of an enum, a list for a tuple, the fields of a value."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in cast("Sequence[object]", value)]
    return {name: plain(getattr(value, name)) for name in field_names(value)} if is_value(value) else value


def firsts(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Give the first of the items for each key, in their order."""
    found: dict[Hashable, T] = {}
    for one in items:
        found.setdefault(key(one), one)
    return list(found.values())


@cache
def tool_version() -> str:
    """Give the version of forensics, as installed."""
    from importlib import metadata  # noqa: PLC0415 - it takes time to load

    try:
        return metadata.version("ml-run-forensics")
    except metadata.PackageNotFoundError:
        return "unknown"
