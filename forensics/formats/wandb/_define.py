"""Which metric a W&B run counts its steps by: `define_metric`, and the optimizer step that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field

from forensics.formats.rows.metrics import int64
from forensics.formats.wandb._items import Names, leaves, parts
from forensics.patterns import lazily

#: x axes that count something else than optimizer steps.
_OTHER_AXIS = lazily(r"token|sample|example|image|epoch|time|hour|second|minute|flop|episode", re.IGNORECASE)
_SUMMARIES: Names = {1: "min", 2: "max", 3: "mean", 4: "best", 5: "last", 6: "none", 7: "copy", 8: "first"}
_GOALS: Mapping[object, str] = {1: "minimize", 2: "maximize"}
_MOST = 100_000
#: The step of the trainer, which counts everything where a program logs it and defines no axis.
TRAINER_STEPS = ("trainer/global_step", "train/global_step", "global_step")


class Definition(Struct, frozen=True):
    """One definition: of one metric, or of all that begin with the part of `name` before its star."""

    name: str
    step_metric: str = ""
    goal: str = ""
    summary: tuple[str, ...] = ()


def definition(data: bytes, at: int, end: int) -> Definition:
    """Read a metric record between two offsets; raises `WireError` when the bytes are no such message."""
    found = dict(leaves(data, at, end, {1: "name", 2: "glob", 4: "axis", 8: "goal"}))
    summary = [
        name for start, stop in parts(data, at, end, 7) for name, on in leaves(data, start, stop, _SUMMARIES) if on
    ]
    name, goal = found.get("name") or found.get("glob", ""), found.get("goal", 0)
    return Definition(str(name), str(found.get("axis", "")), _GOALS.get(goal, ""), tuple(summary))


class StepAxes(Struct):
    """The x axes that were defined so far, and the last value of each.

    The optimizer step of a point is its axis in the same row, else the last one seen, else `_step`. An exact definition
    goes before the longest one with a star. An axis of tokens, samples, epochs or times is no optimizer step. Where
    nothing is defined, the step of the trainer counts from its first row on.
    """

    exact: dict[str, str] = field(default_factory=dict[str, str])
    stars: dict[str, str] = field(default_factory=dict[str, str])
    last: dict[str, int] = field(default_factory=dict[str, int])
    _known: dict[str, str] = field(default_factory=dict[str, str])

    def define(self, what: Definition) -> None:
        """Take one more definition."""
        axis = "" if _OTHER_AXIS.search(what.step_metric) else what.step_metric
        where = self.stars if what.name.endswith("*") else self.exact
        if what.name and len(where) < _MOST:
            where[what.name] = axis
            self._known.clear()

    def assume(self, name: str) -> None:
        """Count all by a metric that is the step of the trainer, where nothing was defined."""
        if name in TRAINER_STEPS and not self.exact and not self.stars:
            self.define(Definition("*", name))

    def axis_of(self, name: str) -> str:
        """The axis of a metric; nothing where it is `_step`."""
        if not self.exact and not self.stars:
            return ""
        known = self._known.get(name)
        if known is None:
            known = self._axis_of(name)
            if len(self._known) < _MOST:
                self._known[name] = known
        return known

    def axes(self) -> frozenset[str]:
        """All axes in use."""
        return frozenset(axis for axis in (*self.exact.values(), *self.stars.values()) if axis)

    def _axis_of(self, name: str) -> str:
        if name in self.axes():
            return name
        if name in self.exact:
            return self.exact[name]
        fitting = [star for star in self.stars if name.startswith(star[:-1])]
        return self.stars[max(fitting, key=len)] if fitting else ""

    def see(self, axis: str, value: float | None) -> None:
        """Note the value of an axis in a row."""
        whole = int64(value)
        if whole is not None:
            self.last[axis] = whole

    def step(self, name: str, own_step: int | None) -> int | None:
        """Optimizer step of a point of the row whose axes were seen last."""
        axis = self.axis_of(name)
        return self.last.get(axis, own_step) if axis else own_step
