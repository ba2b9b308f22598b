"""The meaning of a key of a configuration, whatever the trainer calls it.

The tables: `keys.tsv` (known keys), `noise.tsv`, and `stems.tsv` (words in unknown keys).
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily

_PACKAGE = "forensics.compare.config"
_WORDS = lazily(r"(?<=[a-z0-9])(?=[A-Z])")


class Concept(Struct, frozen=True):
    """One meaning: its name, family, weight (0 to 10), the comparison of values, and the part of a run it acts on."""

    name: str
    family: str
    weight: float
    kind: str
    acts_on: str


OTHER = Concept("other", "other settings", 1.0, "name", "not known")


@cache
def concepts(table: str = "keys.tsv") -> tuple[tuple[Concept, re.Pattern[str]], ...]:
    """Every meaning with the pattern of its keys, in the order in which they are tried."""
    return tuple(
        (Concept(name, family, float(weight), kind, acts_on), re.compile(pattern))
        for name, family, weight, kind, acts_on, pattern in table_rows(_PACKAGE, table)
    )


@cache
def _noise(when: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for asked, _, pattern in table_rows(_PACKAGE, "noise.tsv") if asked == when)


def _is_noise(key: str, when: str) -> bool:
    return any(pattern.fullmatch(key) for pattern in _noise(when))


def normalised(key: str) -> str:
    """A key in lower case, its words joined by `_`, its parts by dots: `train/maxSteps` is `train.max_steps`."""
    plain = key[:300].replace("/", ".").replace("-", "_").lstrip(".")
    return _WORDS.sub("_", plain).lower()


@cache
def concept_of(key: str) -> Concept | None:
    """Give the meaning of a normalised key; `OTHER` where the table has none, None for noise."""
    if _is_noise(key, "first"):
        return None
    for concept, pattern in concepts():
        if pattern.fullmatch(key):
            return concept
    return None if _is_noise(key, "last") else _by_words(key)


def _by_words(key: str) -> Concept:
    """The meaning that the words of an unknown key suggest; `OTHER` where they are of places, rhythms or names."""
    ending = ".".join(key.split(".")[-2:])
    if stands_for("place_or_rhythm", key):
        return OTHER
    return next((concept for concept, pattern in concepts("stems.tsv") if pattern.search(ending)), OTHER)
