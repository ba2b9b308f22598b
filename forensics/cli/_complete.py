"""What the shell offers on TAB; rule ids are read from the files of the rules, without importing any."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from forensics.config import FAIL_ON
from forensics.patterns import lazily

#: How a rule is named: in its declaration, or at the beginning of the docstring of its module.
_NAMED = lazily(r'"([A-Z]{3}\d{3}) ([a-z0-9-]+)[":]')
_FORMATS = ("text", "json", "markdown", "github", "junit", "html")


def rules(incomplete: str) -> list[tuple[str, str]]:
    """Offer ids with their names, or names with their ids once a name was begun."""
    every = sorted(_rules())
    ids = [(rule_id, slug) for rule_id, slug in every if rule_id.startswith(incomplete.upper())]
    return ids or [(slug, rule_id) for rule_id, slug in every if slug.startswith(incomplete.lower())]


def formats(incomplete: str) -> list[str]:
    """Offer the formats of a report."""
    return [name for name in _FORMATS if name.startswith(incomplete)]


def levels(incomplete: str) -> list[str]:
    """Offer what --fail-on takes."""
    return [name for name in FAIL_ON if name.startswith(incomplete)]


def _rules() -> Iterator[tuple[str, str]]:
    spec = find_spec("forensics.rules")
    for place in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(place).rglob("*.py")):
            yield from _NAMED.findall(path.read_text(encoding="utf-8"))
