"""A history by failure: runs that failed for the same reason stand together, the newest failure first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from forensics.history.past import Past


class Group(Struct, frozen=True):
    """Runs of one identity, by the newest diagnosis of each, in the order in which they ended."""

    runs: tuple[Past, ...]

    @property
    def last(self) -> Past:
        """The run that ended last."""
        return self.runs[-1]

    @property
    def first(self) -> Past:
        """The run that ended first."""
        return self.runs[0]


def newest(past: Iterable[Past]) -> tuple[Past, ...]:
    """Give the newest diagnosis of each run, in the order in which the runs ended."""
    by_run: dict[str, Past] = {}
    for one in sorted(past, key=lambda one: one.judged_ns):
        by_run[one.run] = one
    return tuple(sorted(by_run.values(), key=lambda one: (one.ended_ns, one.run)))


def groups(past: Iterable[Past]) -> tuple[Group, ...]:
    """Give the failures of a history; runs in which nothing was found belong to none."""
    by_root: dict[str, list[Past]] = {}
    for one in newest(past):
        if one.root:
            by_root.setdefault(one.root, []).append(one)
    found = (Group(tuple(own)) for own in by_root.values())
    return tuple(sorted(found, key=lambda group: (-group.last.ended_ns, group.last.run)))


def outcomes(past: Iterable[Past]) -> Mapping[str, int]:
    """Count the runs of each outcome, the most frequent first."""
    return dict(Counter(one.outcome for one in newest(past)).most_common())
