"""The playbook of a verdict walked: which checks are done, which signal a check lacks, and what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from forensics.action import Check, Gap, Setting
from forensics.analyses.recorded import asked, recorded
from forensics.case.backend import backend
from forensics.case.settings import settings
from forensics.case.trainers import trainers
from forensics.case.world import world
from forensics.knowledge.causes import filled, is_kind
from forensics.knowledge.playbooks import PlaybookRow, playbooks
from forensics.knowledge.recordings import Recording
from forensics.knowledge.restarts import nature_of
from forensics.model import Finding, Outcome, Recorded, Verdict
from forensics.store.run import Run

#: The playbooks of a run without a verdict, and of one that is healthy as far as its records show.
_NO_VERDICT, _HEALTHY = "none", "healthy"


class _Walk(Struct, frozen=True):
    """What the checks of one run are decided by; `ask` are the signals that it could have recorded."""

    seen: Mapping[str, Recorded]
    settings: Mapping[str, Setting]
    ask: Mapping[str, Recording]
    values: Mapping[str, str]
    lead: str | None


def playbook(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> tuple[Check, ...]:
    """Walk the checks of the verdict's shape in their order; of a healthy run what its records could have shown."""
    blank = _HEALTHY if verdict.outcome is Outcome.HEALTHY else _NO_VERDICT
    shape = verdict.shape.value if verdict.shape is not None else blank
    step = verdict.onset.step
    values = {"run": shlex.quote(run.name), "step": "" if step is None else str(step)}
    lead = findings[verdict.lead].evidence[0].place if verdict.lead is not None else None
    walk = _Walk(recorded(run), settings(run), {one.signal: one for one in asked(run)}, values, lead)
    nature = nature_of(verdict.cause, shape)
    given = {finding.cause for finding in findings}
    rows = (
        row
        for row in playbooks()
        if row.shape == shape
        and (not row.nature or nature in row.nature)
        and (not row.of or verdict.cause in row.of)
        and not given.intersection(row.apart)
        and (not row.kind or is_kind(verdict.cause, row.kind.removeprefix("-")) is not row.kind.startswith("-"))
    )
    return tuple(check for row in rows for check in _walked(row, walk))


def missing(run: Run, verdict: Verdict, checks: Sequence[Check]) -> tuple[Gap, ...]:
    """List the signals that the checks of a verdict ask for and the run does not have, and how to record each."""
    known = frozenset(one.name for one in trainers(run))
    on = frozenset((backend(run), *(("ranks",) if len(world(run)) > 1 else ())))
    ask = {one.signal: one for one in asked(run)}
    wanted = dict.fromkeys(signal for check in checks for signal in check.signals)
    return tuple(gap for signal in wanted for gap in _gap(ask[signal], known, on, verdict.onset.step))


def _walked(row: PlaybookRow, walk: _Walk) -> Iterator[Check]:
    """One check with its state; nothing where it is not asked of such a run."""
    if any(signal not in walk.seen for signal in row.beside) or any(signal in walk.seen for signal in row.without):
        return
    if any(signal not in walk.ask for signal in row.signals):
        return
    text = filled(row.text, walk.values) or row.text
    command = filled(row.command, walk.values) or None if row.command else None
    stated = [walk.settings[name] for name in row.settings if name in walk.settings]
    lacks = tuple(signal for signal in row.signals if signal not in walk.seen)
    state, evidence = "missing" if lacks else "next", None
    if stated and not lacks:
        state, evidence = "done", f"{stated[0].key} = {stated[0].value} ({stated[0].place})"
    elif row.settings and not lacks:
        state, lacks = "missing", () if "settings" in walk.seen else ("settings",)
    elif row.by_lead and walk.lead is not None and not lacks:
        state, evidence = "done", walk.lead
    elif row.signals and not lacks:
        state, evidence = "done", ", ".join(dict.fromkeys(_told(walk.seen[signal]) for signal in row.signals))
    yield Check(row.check, text, state, evidence, command, row.source, lacks)


def _told(seen: Recorded) -> str:
    if seen.first is None or seen.last is None:
        return seen.source
    return f"{seen.source}, steps {seen.first} to {seen.last}"


def _gap(one: Recording, known: frozenset[str], on: frozenset[str], step: int | None) -> Iterator[Gap]:
    recipe = next((recipe for recipe in one.record if recipe.fits(known, on)), None)
    if recipe is not None and (words := recipe.words(step)) is not None:
        yield Gap(one.signal, one.label, one.matters, words, recipe.command or None, one.source)
