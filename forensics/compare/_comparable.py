"""What makes two runs not comparable: other hardware, batches, lengths or precision, read from what both recorded."""

from __future__ import annotations

import json
import re
from functools import cache

import polars as pl
from msgspec import Struct

from forensics.analyses.pace.work import work_of
from forensics.io.tables import table_rows
from forensics.store.run import Run

_NOTHING = frozenset({"null", "none", '""', "~"})
_SAME_WORK = 1.01


class Difference(Struct, frozen=True):
    """One thing that differs: what it is, under which key, and the two values as text."""

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
        if _plain(first[what, key]) != _plain(second[what, key])
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


def _plain(value: str) -> str:
    """Write a value so that equal ones look equal: 4 and 4.0, "bf16" and torch.bfloat16, null and nothing."""
    text = value.strip().lower()
    if text in _NOTHING:
        return ""
    try:
        read: object = json.loads(text)
    except ValueError:
        read = text
    if isinstance(read, bool) or not isinstance(read, int | float):
        word = str(read).removeprefix("torch.").strip().lower()
        return {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(word, word)
    return f"{float(read):.12g}"


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
