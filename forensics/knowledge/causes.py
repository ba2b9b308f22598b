"""Causes: what each slug means, why it happens, what confirms it, and what to do first, from `causes/*.jsonl`.

A row has `cause` (the slug that a rule or an error line gives), `says` (one plain sentence), `deed` (what a rank did,
after its name), `why`, `confirms`, `likely` (what may have brought it about, the likeliest first), `actions` in their
order, `source`, `is_known`, false where it says that nothing is known, and `kind`, what it is in the story of a run
where its shape does not say that: `limit` (the time that was given is over), `after_end` (training had finished),
`ending` (the program was about to end by itself),
`general` (a word for any failure of its shape, whatever its reason), `host_memory` (the memory of the host, and not of
a device), `no_room` (what a write gives to memory whose backing file has no room), `of_counts` (a count is wrong, and
the weights are sound) or `damaged` (a file of weights that cannot be read: the one that the process says it loads).
`nature` says whether it comes again (`restarts`), where its shape does not say that.
`why` and `actions` may be left out where an error line of that cause says it.

An action has `text`, and may have `otherwise` (the text where a value in `text` is not known), `command`, `source`, and
conditions, all of which must hold: `on` (cuda, rocm, tpu, npu, xpu, cpu, unknown; host or device; ranks where there are
several, saves and no_saves where a checkpoint was saved or not, no_snapshot where no memory snapshot was, own_code
where the evidence names a frame of the program, no_frames where it names none, a_trainer or no_trainer where one is
known or not, at_once or later by whether two finite losses came before a number was lost, begun or unbegun by whether
just one did,
unseen where none did and the first record is not that of the first step,
waits_for_data or waits where the frame that was interrupted waits for another process, no_words where a traceback
has no last line, no_stack where faulthandler printed none),
`trainer`, `line` (ids of error lines), `beside` and `apart` (causes that other findings give, or do not), `given`
(other settings with the pattern of their values), `setting` with `unless` (a pattern of values) or `within` (two
numbers, above the first and up to the second) that make it needless, or `where` (a pattern of the values that it is
about), `named` and `unnamed` (one of the names of the run's metrics has a hit, or none has); `value` is what to set
it to, or `*0.5` for a half of the present one. `{fix}` is the advice of the error line, `{next}` the first step that
the finding names itself, `{library}` the package that raised it, `{frame}` the frame that raised it, `{package}` the
installed package of that frame, `{statement}` what it was about to do, `{own}` the program's own frame that led
there, `{look}` what to look at in the part of the program that raised it, `{look_there}` the same where the frames
tell that part, `{died_in}` the call in which native code died and `{died_below}` the program's own above it,
`{installs}` the package that brings a module, `{vast_loss}` a first loss that is too large for
any fresh model, `{show_nan}` the setting with which the trainer's log shows NaN; the
named groups of the error line's pattern are values, too. A part in brackets is left out where a value in it is not
known: `the batch[ of step {step}]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import convert, field

from forensics.knowledge._rows import Row, bare_rows
from forensics.patterns import lazily

#: An action for a cause that only its error line knows how to mend.
FIX = "{fix}"
_OPTIONAL = lazily(r"\[([^\[\]]*)\]")
_NAME = lazily(r"\{(\w+)\}")


class Remedy(Row, frozen=True):
    """One action of a cause, with the conditions under which it is given; `within` is (above, up to)."""

    text: str
    source: str
    otherwise: str = ""
    command: str = ""
    on: tuple[str, ...] = ()
    trainer: tuple[str, ...] = ()
    line: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    setting: str = ""
    unless: str = ""
    within: tuple[float, ...] = ()
    where: str = ""
    named: str = ""
    unnamed: str = ""
    value: str = ""

    def words(self, values: Mapping[str, str]) -> str | None:
        """Its text with the values that are known, else its other text; None when both need more."""
        return filled(self.text, values) or (filled(self.otherwise, values) if self.otherwise else None)

    def is_about(self, value: str | None) -> bool:
        """Whether it is to be told where its setting has a value; None: no file states the setting."""
        if value is None:
            return not self.where
        if self.where and not re.fullmatch(self.where, value):
            return False
        return not (self._is_within(value) or (self.unless and re.fullmatch(self.unless, value)))

    def sets(self, value: str) -> str:
        """What its setting is to become, from the present value; empty where the row does not say."""
        if not self.value.startswith("*"):
            return self.value
        try:
            return f"{float(value) * float(self.value[1:]):g}"
        except ValueError:
            return ""

    def is_given(self, values: Mapping[str, str]) -> bool:
        """Whether the other settings that it needs have such values; one that no file states has none."""
        return all(re.fullmatch(pattern, values.get(name, "")) for name, pattern in self.given.items())

    def _is_within(self, value: str) -> bool:
        try:
            return bool(self.within) and self.within[0] < float(value) <= self.within[1]
        except ValueError:
            return False


class Cause(Row, frozen=True):
    """One cause; `why` is empty and `actions` are `{fix}` alone where its error lines say it.

    `is_known` is false of a row that says that the cause is not known.
    """

    cause: str
    says: str
    confirms: str
    actions: tuple[Remedy, ...]
    source: str
    why: str = ""
    likely: tuple[str, ...] = ()
    is_known: bool = True
    kind: str = ""
    deed: str = ""
    nature: str = ""


@cache
def causes() -> Mapping[str, Cause]:
    """Every cause by its slug; raises `msgspec.ValidationError` for a row with a field that is not known."""
    return {row["cause"]: _cause(row) for row in bare_rows("causes")}


def is_kind(cause: str, kind: str) -> bool:
    """Whether a cause is of a kind that its row says."""
    found = causes().get(cause)
    return found is not None and found.kind == kind


def filled(template: str, values: Mapping[str, str]) -> str | None:
    """Write a text with the values that are known; None when one is missing that no bracket makes optional."""
    kept = _OPTIONAL.sub(lambda part: part[1] if _known(part[1], values) else "", template)
    return _NAME.sub(lambda name: values[name[1]], kept) if _known(kept, values) else None


def _known(text: str, values: Mapping[str, str]) -> bool:
    return all(values.get(name) for name in _NAME.findall(text))


def _cause(row: Mapping[str, Any]) -> Cause:
    told = [{"source": row["source"], **action} for action in row.get("actions") or ({"text": FIX},)]
    return convert({**row, "actions": told}, Cause)
