"""Reasons why two runs are not comparable: other hardware, batches, lengths or precision, as both recorded them."""

from __future__ import annotations

import re
from functools import cache

import polars as pl
from msgspec import Struct

from forensics.analyses.pace.work import work_of
from forensics.compare.config.values import same, value_of
from forensics.io.tables import table_rows
from forensics.store.run import Run

_SAME_WORK = 1.01


class Difference(Struct, frozen=True):
    """One thing that differs: its name, its key, and the two values as text."""

    what: str
    key: str
    base: str
    cand: str

    def __str__(self) -> str:
        """`batch: micro_batch_size 4 → 8`."""
        return f"{self.what}: {self.key} {self.base} → {self.cand}"


def differences(base: Run, cand: Run) -> tuple[Difference, ...]:
    """Everything of the list in `comparable.tsv` that both runs recorded, and differently."""
    first, second = _known(base), _known(cand)
    found = [
        Difference(what, key, first[what, key], second[what, key])
        for what, key in sorted(first.keys() & second.keys())
        if not same(value_of(first[what, key]), value_of(second[what, key]))
    ]
    return (*found, *_work(base, cand))


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((what, re.compile(pattern)) for what, pattern in table_rows("forensics.compare", "comparable.tsv"))


def _known(run: Run) -> dict[tuple[str, str], str]:
    """Values by what they are and the last part of their key; the shortest key wins where one comes twice."""
    facts = (
        run.scan("facts").filter(pl.col("family").is_in(["config", "env"])).select("key", "value").unique().collect()
    )
    found: dict[tuple[str, str], str] = {}
    for key, value in sorted(facts.iter_rows(), key=lambda row: (len(row[0]), row[0])):
        last = re.split(r"[./]", key)[-1].lower().replace("-", "_").removesuffix(".value")
        parts = re.split(r"[./]", key.lower())
        if parts[-1] in {"enabled", "enable", "value"} and len(parts) > 1:
            last = parts[-2].replace("-", "_")
        if re.search(r"(?:^|[._])(?:eval|val|test|valid)", key.lower()) or value is None:
            continue
        for what, pattern in _patterns():
            if pattern.fullmatch(last):
                found.setdefault((what, last), str(value))
    return found


def _work(base: Run, cand: Run) -> tuple[Difference, ...]:
    """Tokens or samples per step, where both logs tell them."""
    first, second = (_usual_work(run) for run in (base, cand))
    return tuple(
        Difference("work per step", f"{unit}s per step", f"{first[unit]:.6g}", f"{second[unit]:.6g}")
        for unit in sorted(first.keys() & second.keys())
        if max(first[unit], second[unit]) > _SAME_WORK * min(first[unit], second[unit])
    )


def _usual_work(run: Run) -> dict[str, float]:
    work = work_of(run)
    return dict(work.group_by("unit").agg(pl.col("work").median()).iter_rows()) if work.height else {}
