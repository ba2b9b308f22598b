"""Makers of golden runs: each module here but `base` and those whose name begins with `_` gives runs that the lab cannot leave, and pairs for `diff`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from make.base import Made, Pair


def made() -> Iterator[Made]:
    """Every run of every maker, by module and in its order."""
    for module in _modules():
        yield from module.runs()


def pairs() -> Iterator[Pair]:
    """Every pair of runs to compare."""
    for module in _modules():
        yield from getattr(module, "pairs", tuple)()


def _modules() -> list[ModuleType]:
    names = sorted(one.name for one in pkgutil.iter_modules(__path__) if one.name != "base" and one.name[0] != "_")
    return [importlib.import_module(f"{__name__}.{name}") for name in names]
