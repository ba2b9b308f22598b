"""What to look at for each shape, in the order of cost, from `advice/playbooks.jsonl`.

A row has `check` (its id, a shape and a name), `shape` (`none` where there is no verdict, `healthy` where nothing was
found), `also` (other shapes whose check it is), `text` (what to do, and what it tells), `source`, and what decides it
on files: `signals` (of `recordings`, all of them), `settings` (of `settings`, any of them), or `by_lead`, the evidence
on which the verdict rests. One that no file decides is an experiment. It is not asked without the signals `beside`,
with one of `without`, where a finding gives a cause of `apart`, of verdicts whose cause is none of `of`, of causes of
another `nature` (of `restarts`), nor of another `kind` (of `causes`; `-host_memory` are all others). `command` is what
to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from forensics.knowledge._rows import Row, rows_of
from forensics.values import replace


class PlaybookRow(Row, frozen=True):
    """One check of the playbook of a shape."""

    check: str
    shape: str
    text: str
    source: str
    signals: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    nature: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    kind: str = ""
    by_lead: bool = False
    command: str = ""
    also: tuple[str, ...] = ()


@cache
def playbooks() -> tuple[PlaybookRow, ...]:
    """Every check, those of one shape in their order."""
    return tuple(each for row in rows_of("advice/playbooks.jsonl", PlaybookRow) for each in _of_each_shape(row))


def _of_each_shape(row: PlaybookRow) -> Iterator[PlaybookRow]:
    own, _, name = row.check.partition(".")
    for shape in (own, *row.also):
        yield replace(row, check=f"{shape}.{name}", shape=shape)
