"""What dies once may have died of what is read beside it: a source is tried once more, alone, before it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from forensics.store.disk import Lost, Outcome
from forensics.store.unit import Item, Record

#: Does items, with others beside them or alone, and gives for each its record, or how the process died of it.
Attempt = Callable[[Sequence[Item], bool], Iterator[tuple[Item, Record | None, str]]]


def tried_twice(attempt: Attempt, items: Sequence[Item]) -> Iterator[Outcome]:
    """Do every item; one that a process dies of is done again when all others are, a source at a time."""
    died: list[Item] = []
    for item, record, _ in attempt(items, False):  # noqa: FBT003 - the one thing that an attempt is told
        if record is None:
            died.append(item)
        else:
            yield item, record
    for one, record, how in attempt([one for item in died for one in item.alone()], True):  # noqa: FBT003 - same
        yield Lost(one, f"{how}, twice") if record is None else (one, record)
