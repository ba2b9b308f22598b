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
    found = (one.name for one in pkgutil.walk_packages(__path__, f"{__name__}.") if not one.ispkg)
    makers = (name for name in found if name != f"{__name__}.base" and not name.rpartition(".")[2].startswith("_"))
    return [importlib.import_module(name) for name in sorted(makers)]
