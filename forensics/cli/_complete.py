"""What the shell offers on TAB; rule ids are read from the first line of each rule's file, without importing any."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from forensics.config import FAIL_ON

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
    for module in pkgutil.walk_packages(spec.submodule_search_locations if spec else [], "forensics.rules."):
        if module.ispkg or module.name.rsplit(".", 1)[-1].startswith("_"):
            continue
        found = module.module_finder.find_spec(module.name, None)  # type: ignore[call-arg] # of a path finder
        if found is not None and found.origin:
            with Path(found.origin).open(encoding="utf-8") as file:
                words = file.readline().strip().strip('"').split(":", 1)[0].split()
            if len(words) == 2:
                yield words[0], words[1]
