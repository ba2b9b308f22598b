"""What to do about a verdict: values that verdicts and answers carry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the run as it is: `key` and `value` as its files have them, `place` as `file:line`."""

    key: str
    value: str
    place: str


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do, from the cause of a verdict; `setting` is what it changes, as the run has it now."""

    text: str
    source: str
    command: str | None = None
    setting: Setting | None = None
