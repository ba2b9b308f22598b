"""How to find the commit that made the difference between two runs, where both say theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from forensics.compare.config.audit import Difference
from forensics.patterns import lazily

_COMMIT = "code.commit"
_HASH = lazily(r"[0-9a-f]{7,64}")


def bisected(differences: Iterable[Difference]) -> Iterator[str]:
    """Give the command that begins a bisection from a good run (base) to a bad one (cand)."""
    for one in differences:
        if one.name == _COMMIT and _HASH.fullmatch(one.base) and _HASH.fullmatch(one.cand):
            yield f"the code differs: git bisect start {one.cand} {one.base} finds the commit between bad and good"
