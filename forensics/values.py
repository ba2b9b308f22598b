"""Values: frozen fields under names, compared by what they hold.

What others see (`model.py`, `action.py`, `figure.py`, thresholds of installed rules) are data classes.
What is made and read inside are Structs of msgspec, which are the same to work with: Python writes and compiles the
methods of a data class anew at each start, 0.5 ms for each, a Struct has them ready and takes 0.01 ms.
"""

from __future__ import annotations

import dataclasses
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


@cache
def tool_version() -> str:
    """Give the version of forensics, as installed."""
    from importlib import metadata  # noqa: PLC0415 - it takes time to load

    try:
        return metadata.version("ml-run-forensics")
    except metadata.PackageNotFoundError:
        return "unknown"
