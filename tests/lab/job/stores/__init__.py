"""Files that a job leaves beside its log: a module for each, with a class `Store`.

A store has `write(step, values)` for each record of metrics, and may have `begin(step)` and `end(step)` around a step,
`start(config)` before the first, `saved(step, path, net)` after each checkpoint, `trained(step, net)` after the last
step, and `close()`, which a job that dies never calls. `everyone = True` makes one on every rank, else rank 0 has it.
"""

from __future__ import annotations

import importlib

from facts import JOB, RANK


class Stores:
    """Every store that the job was asked for, called as one."""

    def __init__(self, config=None, native=()):
        """All but those that a library fills by itself."""
        made = [importlib.import_module(f"stores.{name}").Store for name in JOB["stores"] if name not in native]
        self.made = [store() for store in made if RANK == 0 or getattr(store, "everyone", False)]
        self._each("start", config or {})

    def _each(self, name, *given):
        for store in self.made:
            getattr(store, name, lambda *_: None)(*given)

    def begin(self, step):
        self._each("begin", step)

    def end(self, step):
        self._each("end", step)

    def write(self, step, values):
        self._each("write", step, values)

    def saved(self, step, path, net):
        self._each("saved", step, path, net)

    def trained(self, step, net):
        self._each("trained", step, net)

    def close(self):
        self._each("close")
