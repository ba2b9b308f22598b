"""A row of the fault tables: what goes wrong, where it can be injected, and what is right to say of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Facts = list[dict[str, Any]]
#: How the truth is changed by what was done to the files of a run.
After = Callable[[Any, Path, Facts, random.Random], dict[str, Any]]
Shown = Callable[[Any, Facts, list[int]], str]


#: Trainers that do not print their learning rate; a file of metrics has it.
_RATELESS = frozenset(("torchtitan", "keras", "keras-epochs"))


def always(_job: Any, _facts: Facts, _codes: list[int]) -> str:
    """Nothing to check: how the job ended is proof."""
    return ""


def rate_logged(job: Any, _facts: Facts, _codes: list[int]) -> str:
    """A schedule shows where something holds the learning rate."""
    return "no learning rate was logged" if job.trainer in _RATELESS and not job.stores else ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, or one control that has none.

    `shape`, `causes` and `outcome` are what a right answer may say: several, joined by `|`, where evidence cannot tell
    them apart. `says` are words of which the first action of a good answer holds at least one. `needs` names the hooks
    of `job/hooks.py` that a trainer must call for it, `leaves` the stores that it needs, `trainers` the only ones that
    can show it, where not all can. `culprit` holds where there are several ranks. `starts` is how many processes follow
    each other in one place, `beside` that each is a run of its own. An `early` fault comes before the first record; a
    `bare` job leaves its log alone. `after` changes files once the processes ended (a cut log), and the truth with them;
    `shown` gives the reason why the fault does not show on disk, or nothing.
    """

    name: str
    outcome: str
    shape: str
    causes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset(("before",))
    ranks: tuple[int, ...] = (1,)
    steps: tuple[int, int] = (90, 180)
    begins: tuple[float, float] = (0.35, 0.7)
    onset: bool = True
    culprit: bool = False
    leaves: tuple[str, ...] = ()
    trainers: tuple[str, ...] = ()
    eval_every: tuple[int, ...] = (0, 0, 25, 50)
    starts: int = 1
    beside: bool = False
    early: bool = False
    bare: bool = False
    ends: str = ""
    after: After | None = None
    shown: Shown = always
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


FAILED, SOFT, HEALTHY, NONE = "failed", "failed|suspect", "healthy", "none"
#: Loops of our own, which print nothing that they were not told to; of these, those whose every rank has a log; those
#: that print memory.
PLAIN = ("print", "logging", "dict", "kempnerforge", "megatron", "torchtitan")
EVERY_RANK = ("logging", "kempnerforge")
SHOW_MEMORY = ("print", "logging", "kempnerforge", "torchtitan")


def needs(*hooks: str) -> frozenset[str]:
    """The hooks that a trainer must call."""
    return frozenset(hooks)


def last(facts: Facts, key: str) -> Any:
    """The last value that any rank noted under a key; None where none did."""
    return next((one[key] for one in reversed(facts) if key in one), None)


def of(facts: Facts, key: str) -> Facts:
    """The notes that carry a key, in order."""
    return [one for one in facts if key in one]
