"""What counters count, and by which names plans are told: two tables, each row with its source.

`counters.tsv` tells by the words before a bar, and by the unit of its rate, whether it counts training, an evaluation,
a data set, a download or samples. `plans.tsv` names what says how far training is to go, in steps or in epochs.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from forensics.io.tables import table_rows


class PlanName(Struct, frozen=True):
    """One name of a plan: its pattern, its unit (step or epoch), and a literal of the log lines that tell it."""

    pattern: str
    unit: str
    needle: str


@cache
def plan_names() -> tuple[PlanName, ...]:
    """The names of plans; words are joined by `_`, `-`, a blank or nothing, and case does not count."""
    return tuple(
        PlanName("[-_ ]?".join(map(re.escape, re.split("[_ ]", name))), unit, needle)
        for name, unit, needle, _ in table_rows("forensics.dialects", "plans.tsv")
    )


def plan_keys(unit: str) -> str:
    """Give a pattern of the keys of settings that name a plan in a unit; W&B puts `.value` behind each."""
    return rf"(?i)(?:^|[./])(?:{'|'.join(name.pattern for name in plan_names() if name.unit == unit)})(?:[./]value)?$"


def kind_of(label: str, per: str = "") -> str:
    """Tell what a bar counts (train, eval, data, download or sampling) by its words and its rate; empty if unknown."""
    told = {"words": label, "rate": per}
    return next((kind for where, pattern, kind in _kinds() if pattern.search(told[where])), "")


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    return tuple(
        (where, re.compile(pattern, re.IGNORECASE), kind)
        for where, pattern, kind, _ in table_rows("forensics.dialects", "counters.tsv")
    )
