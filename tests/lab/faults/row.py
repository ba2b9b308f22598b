"""A row of the fault tables: what goes wrong, where it can be injected, and what is right to say of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Facts = list[dict[str, Any]]
#: How the truth is changed by what was done to the files of a run.
After = Callable[[Any, Path, random.Random], dict[str, Any]]
Shown = Callable[[Any, Facts, list[int]], str]


def always(_job: Any, _facts: Facts, _codes: list[int]) -> str:
    """Nothing to check: how the job ended is proof."""
    return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, or one control that has none.

    `shape`, `causes` and `outcome` are what a right answer may say: several, joined by `|`, where evidence cannot tell
    them apart. `says` are words of which the first action of a good answer holds at least one. `needs` names the hooks
    of `job/hooks.py` that a trainer must call for it, `leaves` the stores that it needs. `starts` is how many processes
    follow each other in one place; `after` changes files once they ended (a cut log); `shown` gives the reason why the
    fault does not show on disk, or nothing.
    """

    name: str
    outcome: str
    shape: str
    causes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset(("before",))
    ranks: tuple[int, ...] = (1,)
    steps: tuple[int, int] = (90, 240)
    begins: tuple[float, float] = (0.35, 0.7)
    onset: bool = True
    culprit: bool = False
    leaves: tuple[str, ...] = ()
    eval_every: tuple[int, ...] = (0, 0, 25, 50)
    starts: int = 1
    ends: str = ""
    after: After | None = None
    shown: Shown = always
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])


FAILED, SOFT, HEALTHY, NONE = "failed", "failed|suspect", "healthy", "none"
#: Worlds of a fault that needs company.
GROUP = (2, 2, 4)


def needs(*hooks: str) -> frozenset[str]:
    """The hooks that a trainer must call."""
    return frozenset(hooks)


def last(facts: Facts, key: str) -> Any:
    """The last value that any rank noted under a key; None where none did."""
    return next((one[key] for one in reversed(facts) if key in one), None)


def of(facts: Facts, key: str) -> Facts:
    """The notes that carry a key, in order."""
    return [one for one in facts if key in one]
