"""Pieces of text that several sections of the page use."""

from __future__ import annotations

from forensics.model import Evidence
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag

#: Places of a finding that are shown.
MOST_EVIDENCE = 12


def evidence_of(evidence: Evidence) -> Markup:
    """Give one place, and what stands there."""
    said = evidence.quote.strip() or (f"{evidence.name} = {evidence.value}" if evidence.name else "")
    role = "" if evidence.role.value == "primary" else f" ({evidence.role.value})"
    place = tag("p", tag("code", evidence.place), role)
    return join(place, tag("pre", said)) if said else place


def more(count: int, noun: str) -> list[Markup]:
    """Say how many are not shown; nothing where all are."""
    return [tag("p", f"and {say.plural(count, f'more {noun}')}.", class_="soft")] if count > 0 else []
