"""The runs of a fleet on the engine that was asked for: what each says, in the order in which they were asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from forensics.fleet.judging import How, Judged, Record, Task, judge, judged, not_judged, tasks
from forensics.fleet.members import Member
from forensics.scale.choice import Spread
from forensics.store.disk import Lost, one_by_one
from forensics.store.run import Run


def answers(
    members: Sequence[Member], how: How, spread: Spread, bases: Sequence[Run]
) -> Iterator[tuple[Member, Judged]]:
    """Judge runs, wherever that is done; a run that ends its process twice costs its own answer.

    `bases` are the runs `how.bases`, as they were read here; other processes read them again.

    Raises:
        MissingPackage: when the engine's package is not installed.
        PlaceError: when a machine refuses the store, or a place as a whole.
    """
    sizes_bytes = [member.size_bytes for member in members]
    is_alone = spread.is_alone(sizes_bytes)
    every = tasks(members, how, alone=is_alone)
    if is_alone:
        outcomes = one_by_one(lambda task: judged(task, bases), every)
    else:
        outcomes = spread.runs(judge, every, sizes_bytes)
    waiting: dict[str, Judged] = {}
    left = deque(zip(members, (run.address for task in every for run in task.runs), strict=True))
    for outcome in outcomes:
        waiting.update(_said(outcome))
        while left and left[0][1] in waiting:
            member, address = left.popleft()
            yield member, waiting.pop(address)


def _said(outcome: tuple[Task, Record] | Lost[Task]) -> Iterator[tuple[str, Judged]]:
    if isinstance(outcome, Lost):
        return ((run.address, not_judged(run, outcome.why)) for run in outcome.item.runs)
    task, record = outcome
    return zip((run.address for run in task.runs), record.judged, strict=True)
