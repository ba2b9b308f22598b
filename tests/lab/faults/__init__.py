"""Every fault that the lab injects and every control, from one module for each kind; each gives `ROWS`."""

from __future__ import annotations

import importlib
import pkgutil

from faults.row import Fault

CONTROL = "fine"
_MODULES = sorted(one.name for one in pkgutil.iter_modules(__path__) if one.name != "row")
ROWS: tuple[Fault, ...] = tuple(row for name in _MODULES for row in importlib.import_module(f"faults.{name}").ROWS)
BY_NAME = {row.name: row for row in ROWS}
CONTROLS = tuple(row for row in ROWS if row.name.split("-")[0] == CONTROL)
FAULTS = tuple(row for row in ROWS if row not in CONTROLS)
