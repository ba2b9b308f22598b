"""The sections of a comparison, found by a walk over `sections/`: one new file there is one new section.

A section is a module whose name does not begin with `_`, with one value, `SECTION = SectionKind(name, order, compare)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from forensics.compare.model import Diff, Options, Section
from forensics.registry import values
from forensics.store.run import Run

_PACKAGE = "forensics.compare.sections"


class SectionKind(Struct, frozen=True):
    """A way to compare: `compare(bases, cand, options)` gives a section, or None where the runs hold nothing of it."""

    name: str
    order: int
    compare: Callable[[Sequence[Run], Run, Options], Section | None]


@cache
def kinds() -> tuple[SectionKind, ...]:
    """Every section there is, in their order."""
    found = values(_PACKAGE, "SECTION", SectionKind)
    return tuple(sorted(found, key=lambda kind: (kind.order, kind.name)))


def diff(bases: Sequence[Run], cand: Run, options: Options | None = None, names: Sequence[str] | None = None) -> Diff:
    """Compare a candidate with one or more baselines, in the sections named, or in all that both have."""
    options = options or Options()
    wanted = [kind for kind in kinds() if names is None or kind.name in names]
    found = [kind.compare(bases, cand, options) for kind in wanted]
    return Diff(tuple(b.name for b in bases), cand.name, tuple(s for s in found if s is not None))
