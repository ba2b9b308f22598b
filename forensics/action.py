"""What to do about a verdict, and what to look at next: values that verdicts and answers carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the run as it is: `key` and `value` as its files have them, `place` as `file:line`."""

    key: str
    value: str
    place: str


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, from the cause of a verdict; `setting` is what it changes, as the run has it now.

    `value` is what the setting is to become, where that is known.
    """

    text: str
    source: str
    command: str | None = None
    setting: Setting | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """Whether to start the run again: as it is, after a change, elsewhere, not at all (`stop`), or nobody can say.

    `basis` says why. `tries` is how many more attempts may fail without getting further before somebody has to look.
    `command` are the options that load the last good checkpoint, with the change in it where it is known. `change` is
    what has to change first, `avoid` the hosts to leave out. `no_checkpoint` says what is wrong with the last
    checkpoint of a run that left no usable one.
    """

    decision: Literal["as_is", "after_change", "elsewhere", "stop", "unknown"]
    basis: str
    tries: int = 0
    command: str | None = None
    change: str | None = None
    avoid: tuple[str, ...] = ()
    no_checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a playbook: `done` by `evidence`, `missing` the `signals` that decide it, or `next` to be made."""

    check: str
    text: str
    state: Literal["done", "missing", "next"]
    evidence: str | None
    command: str | None
    source: str
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A signal that a run did not record; `label` follows "no", `command` is what records it where one does."""

    signal: str
    label: str
    why_it_matters: str
    how_to_record: str
    command: str | None
    source: str
