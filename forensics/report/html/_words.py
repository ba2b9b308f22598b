"""Pieces of text that several sections of the page use."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from forensics.identity import bare
from forensics.model import Evidence, EvidenceRole, Verdict
from forensics.patterns import lazily
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, some, tag

_OPTION = lazily(r" (?=--)")
#: Places of a finding that are shown.
MOST_EVIDENCE = 12
#: Places that a folded line names.
_PLACES = 3
#: Places that are not folded.
_OPEN = 3
_OUTCOMES = {"failed": "FAILED", "suspect": "SUSPECT", "healthy": "HEALTHY", "cannot_say": "CANNOT SAY"}


def outcome(verdict: Verdict) -> Markup:
    shape = f" {verdict.shape.value.replace('_', ' ')}" if verdict.shape else ""
    return tag("span", _OUTCOMES[verdict.outcome.value] + shape, class_=f"outcome {verdict.outcome.value}")


def evidence_of(evidence: Evidence) -> Markup:
    role = " (speaks against it)" if evidence.role is EvidenceRole.CONTRADICTS else ""
    return join(tag("p", tag("code", evidence.place), role), some("pre", say.stated(evidence)))


def command(text: str | None) -> Markup:
    """Give a command to copy, which wraps only before an option; nothing without a command."""
    if text is None:
        return join()
    options = (tag("span", option, class_="option") for option in _OPTION.split(text))
    return tag("pre", [join(" " if n else "", option) for n, option in enumerate(options)])


def proof_of(every: Sequence[Evidence], told: Collection[tuple[str, str]] = ()) -> Markup:
    """Give each place once; the same words for other ranks or times are folded below the first.

    `told` are places and quotes that are elsewhere on the page: only the place is given.
    """
    kinds: dict[str, list[Evidence]] = {}
    for evidence in {(e.place, e.quote): e for e in every[:MOST_EVIDENCE]}.values():
        same = bare(evidence.quote) if evidence.quote.strip() and evidence.value is None else evidence.place
        kinds.setdefault(same, []).append(evidence)
    parts = [_folded(alike, told) for alike in kinds.values()]
    if len(parts) > _OPEN + 1:
        rest = tag("summary", f"and {say.plural(len(parts) - _OPEN, 'more place')}")
        parts[_OPEN:] = [tag("details", rest, parts[_OPEN:])]
    return join(parts, more(len(every) - MOST_EVIDENCE, "place"))


def _folded(alike: list[Evidence], told: Collection[tuple[str, str]]) -> Markup:
    first, rest = alike[0], alike[1:]
    is_told = (first.place, first.quote) in told
    shown = tag("p", tag("code", first.place), " (see above)") if is_told else evidence_of(first)
    if not rest:
        return shown
    places = f"and {len(rest)} more of the same words: {', '.join(e.place for e in rest[:_PLACES])}"
    more_places = f" and {len(rest) - _PLACES} more" if len(rest) > _PLACES else ""
    return join(shown, tag("details", tag("summary", places + more_places), map(evidence_of, rest)))


def more(count: int, noun: str) -> Markup:
    """Say how many are not shown; nothing where all are."""
    return tag("p", f"and {say.plural(count, f'more {noun}')}.", class_="soft") if count > 0 else join()
