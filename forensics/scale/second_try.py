"""What dies once may have died of what is read beside it: a source is tried once more, alone, before it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

from forensics.store.disk import Lost


class Work(Protocol):
    """What engines do: an item of a run, or some runs of a fleet."""

    @property
    def size_bytes(self) -> int:
        """Bytes on disk that are held at once."""
        ...

    def alone(self) -> tuple[Self, ...]:
        """Give its smallest pieces, each of which may be lost by itself."""
        ...


W = TypeVar("W", bound=Work)
R = TypeVar("R")
#: Does items, with others beside them or alone, and gives for each its record, or how the process died of it.
Attempt = Callable[[Sequence[W], bool], Iterator[tuple[W, R | None, str]]]


def tried_twice(attempt: Attempt[W, R], items: Sequence[W]) -> Iterator[tuple[W, R] | Lost[W]]:
    """Do every item; one that a process dies of is done again when all others are, a piece at a time."""
    died: list[tuple[W, str]] = []
    for item, record, how in attempt(items, False):  # noqa: FBT003 - the one thing that an attempt is told
        if record is None:
            died.append((item, how))
        else:
            yield item, record
    pieces = [(one, how) for item, how in died for one in item.alone()]
    first = {id(one): how for one, how in pieces}  # work of a fleet has no hash
    for one, record, how in attempt([one for one, _ in pieces], True):  # noqa: FBT003 - same
        if record is not None:
            yield one, record
        else:
            yield Lost(one, f"{how}, twice" if how == first[id(one)] else f"{first[id(one)]}; then {how}")
