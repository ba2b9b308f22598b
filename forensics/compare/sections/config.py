"""Settings of two runs: the differences, ranked by how plausibly they change evaluations, with both places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.compare.config.audit import Audit, Difference, audit_all, bisected
from forensics.compare.diff import SectionKind
from forensics.compare.model import Options, Section
from forensics.model import Number
from forensics.store.run import Run
from forensics.values import named

_TITLE = "Settings"
_SHOWN, _OTHERS_SHOWN = 20, 8


def compare(bases: Sequence[Run], cand: Run, options: Options) -> Section | None:
    """Compare the settings of a candidate with those of the baselines."""
    del options
    found = audit_all(bases, cand)
    if not found.base_settings and not found.cand_settings and not found.differences:
        return None
    return Section(
        name="config",
        title=_TITLE,
        answer=None,
        headline=_headline(found),
        facts=tuple(_facts(found)),
        notes=tuple(_notes(found, bases)),
        numbers=_numbers(found),
        evidence=tuple(e for one in found.causes[:1] for e in (one.base_evidence, one.cand_evidence) if e is not None),
        rows=tuple(_row(n, one) for n, one in enumerate(found.differences, 1)),
    )


def _headline(found: Audit) -> str:
    causes = found.causes
    if not found.base_settings or not found.cand_settings:
        return f"the {'baseline' if not found.base_settings else 'candidate'} recorded no settings"
    if causes:
        top = causes[0]
        more = f"; {len(causes) - 1} more may matter" if len(causes) > 1 else ""
        return f"most plausible cause of other evaluations: {top.name}, {top.key} {top.base} → {top.cand}{more}"
    if found.differences:
        return f"{len(found.differences)} settings differ, none of which plausibly changes evaluations"
    return "nothing that was recorded differs"


def _facts(found: Audit) -> Iterator[tuple[str, str]]:
    others = [d for d in found.differences if not d.is_cause]
    for number, one in enumerate(found.causes[:_SHOWN], 1):
        yield f"cause {number}", _line(one)
    for one in others[:_OTHERS_SHOWN]:
        yield "minor", _line(one)
    hidden = max(len(found.causes) - _SHOWN, 0) + max(len(others) - _OTHERS_SHOWN, 0)
    if hidden:
        yield "and", f"{hidden} more; --format json lists all"


def _line(one: Difference) -> str:
    base, cand = (e.place if e else "not stated" for e in (one.base_evidence, one.cand_evidence))
    note = f"; {one.note}" if one.note else ""
    what = f"{one.family}: {one.key} {one.base} → {one.cand}; effect {one.score:g} of 10, on {one.acts_on}{note}"
    return f"{what}; base {base}, cand {cand}"


def _notes(found: Audit, bases: Sequence[Run]) -> Iterator[str]:
    yield from bisected(found.differences)
    if len(bases) > 1:
        yield "values are those of the first baseline; what the candidate shares with another one is left out"
    for who, drifts in (("baseline", found.base_drifts), ("candidate", found.cand_drifts)):
        for text in drifts:
            yield f"in the {who} {text}"
    if any(d.family == "decoding" for d in found.causes):
        yield "decoding acts only on tasks that generate text, not on those that score given answers"
    for who, lacks in (("baseline", found.base_lacks), ("candidate", found.cand_lacks)):
        if lacks and (found.base_settings if who == "baseline" else found.cand_settings):
            yield f"the {who} recorded nothing of: {', '.join(lacks)}"
    if not found.causes:
        yield (
            "a cause that was not recorded cannot be found: keep the output of pip freeze, the commit, the tokenizer's "
            "files and the data mix beside the run"
        )


def _numbers(found: Audit) -> dict[str, Number | None]:
    top = named(next(iter(found.causes), None), "top=name top_family=family")
    counts = {"differences": len(found.differences), "causes": len(found.causes)}
    return {**counts, **named(found, "base_settings cand_settings"), **top}


def _row(number: int, one: Difference) -> dict[str, Number | None]:
    places = named(one, "base_place=base_evidence.place cand_place=cand_evidence.place note")
    cause = str(one.is_cause).lower()
    return {"rank": number, **named(one, "name family key base cand score"), "cause": cause, **places}


SECTION = SectionKind("config", 10, compare)
