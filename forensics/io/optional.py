"""Packages that a slim installation leaves out: imported where they are used, and missed in one line."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from forensics.errors import MissingPackage


def optional(module: str, package: str) -> Any:  # noqa: ANN401 - none of them has types
    """Import a module of a package that only its caller needs.

    Raises `MissingPackage` when the package, or one that it needs, is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingPackage(package) from error
