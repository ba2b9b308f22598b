"""What a run may record, by what each is seen, why it matters and how to record it, from `advice/recordings.jsonl`.

A row has `signal`, `label` (after "no"), and by what it is seen: `metrics` (a pattern of canonical names), `kind` (of
names that an analysis knows: pace, device_memory, host_memory, settings, end), `tables` (any that has rows), `formats`
(a pattern of formats of files), `events` (a pattern of ids of error lines), `facts` (a pattern of keys), or `ranks`
(files of at least two ranks; it is asked of runs of several ranks only). `matters` is half a sentence; `record` are
recipes in order, the first that fits is told: `text`, `command`, `trainer` and `on` (a backend, or `ranks` where there
are several; an empty one where no backend is known). In a text `{step}` is the onset, and a part in brackets is left
out where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import Row, rows_of
from forensics.knowledge.causes import filled


class Recipe(Row, frozen=True):
    """One way to record a signal."""

    text: str
    command: str = ""
    trainer: tuple[str, ...] = ()
    on: tuple[str, ...] = ()

    def fits(self, trainers: frozenset[str], on: frozenset[str]) -> bool:
        """Whether it is for one of the trainers, and for what the run computed on."""
        return (not self.trainer or bool(trainers.intersection(self.trainer))) and (
            not self.on or bool(on.intersection(self.on))
        )

    def words(self, step: int | None) -> str | None:
        """Its text, with the step of the onset where it names one."""
        return filled(self.text, {} if step is None else {"step": str(step)})


class Recording(Row, frozen=True):
    """One signal."""

    signal: str
    label: str
    matters: str
    record: tuple[Recipe, ...]
    source: str
    metrics: str = ""
    kind: str = ""
    tables: tuple[str, ...] = ()
    formats: str = ""
    events: str = ""
    facts: str = ""
    ranks: bool = False


@cache
def recordings() -> Mapping[str, Recording]:
    """Every signal by its name, those that every run should have first."""
    return {row.signal: row for row in rows_of("advice/recordings.jsonl", Recording)}
