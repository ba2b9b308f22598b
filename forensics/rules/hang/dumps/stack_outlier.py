"""Stacks inside and outside of collectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.stacks import Stack, main_threads, stacks
from forensics.case.end_markers import marks_of
from forensics.case.errors.exits import exits
from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight
from forensics.case.rank_spans import all_ranks, ranks_do, ranks_text
from forensics.case.series import metric_records
from forensics.case.world import world
from forensics.knowledge.libraries import is_library
from forensics.knowledge.signals import is_killed
from forensics.knowledge.vocabulary import stands_for
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues, of_stack
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, proof, rule

_SHOWN = 3
#: Less than what a stack proves without a complaint: ranks at work are in different places.
_APART = 3
#: What ends the wait: for a worker of the loader, or not.
_COMES = {
    True: "it waits there until a worker gives its batch",
    False: "a rank waits there until all ranks of its group come",
}
#: All ranks reduce gradients; a barrier is what a rank comes to that left the loop, or takes another branch.
_BARRIER = "barrier"


@gives_clues("HNG008 stack-outlier")
def stack_outlier(run: Run) -> Iterator[Clue]:
    """Outliers among the stacks; a rank that says that it waits needs none."""
    found = {r: s for r, s in stacks(run).items() if s.frames and not s.ended}
    inside = {r: s for r, s in found.items() if s.inside or s.starting}
    outside = {r: s for r, s in found.items() if r not in inside}
    late = complaints(run).victims
    free = {r: s for r, s in outside.items() if r not in late} or outside
    if len(found) < 2:
        waits = complaints(run).late
        if free.keys() - late and len(waits) > 1:
            yield from _outside(free, sorted(waits), of_failure(waits[min(waits)]))
    elif inside and free and len(free) * 2 <= len(found):
        starting = all(s.starting for s in inside.values())
        yield from _outside(
            free, sorted(inside), of_stack(next(iter(inside.values()))), "init_hang" if starting else ""
        )
    elif not outside:
        yield from _all_inside(run, inside)
    elif not inside:
        yield from _apart(outside)


def _apart(found: Mapping[int, Stack]) -> Iterator[Clue]:
    """No stack is known to wait: the few ranks that are in another call than most, which counts beside a failure."""
    sides = _sides(found, lambda stack: stack.frames[0].function)
    odd = tuple(sorted(rank for side in sides[:-1] for rank in side))
    if not odd or len(odd) * 2 >= len(found):
        return
    first, other = found[odd[0]], found[sides[-1][0]]
    why = f"{ranks_text(odd)} {'is' if len(odd) == 1 else 'are'} in {first.at.text}, most others in {other.at.text}"
    yield Clue(odd, first.work or "host_stall", _APART, "stack", why, (of_stack(first), of_stack(other)))


def _outside(free: Mapping[int, Stack], waiting: Sequence[int], proof: Evidence, cause: str = "") -> Iterator[Clue]:
    """What each rank outside of all collectives does; `cause`, where it is known from those that wait."""
    for rank, stack in free.items():
        work = stack.work or ("host_stall_loop" if stack.running else "host_stall")
        why = f"rank {rank} is in {stack.at.text} while {ranks_do(waiting, 'wait for others')}"
        yield Clue((rank,), cause or work, 6, "stack", why, (of_stack(stack), proof))


def _all_inside(run: Run, found: Mapping[int, Stack]) -> Iterator[Clue]:
    """All wait: name the smaller set of ranks by the call that they wait in."""
    if all(s.p2p for s in found.values()):
        proof = tuple(of_stack(s) for s in list(found.values())[:_SHOWN])
        yield Clue((), "p2p_cycle", 5, "stack", "all ranks wait in a send or a receive", proof, tuple(sorted(found)))
        return
    raised = any(s.raised for s in found.values())
    # a signal that no launcher sends ended a rank: the others raise wherever they were
    died = any(is_killed(end.code) and not end.forced for end in exits(run).by_rank.values())
    if raised and (died or len(found) < len(world(run))):
        return
    calls = _sides(found, lambda stack: stack.call)
    # a traceback has other frames than a dump of the same call
    sides = calls if raised or len(calls) > 1 else _sides(found, _own_frames)
    if len(sides) < 2:
        yield from _all_alike(run, found)
        return
    cause = "collective_mismatch_op" if len(calls) > 1 else "different_collective"
    barrier = [side for side in sides if found[side[0]].call == _BARRIER]
    rest = sides[-1]
    odd = tuple(sorted(r for ranks in sides[:-1] for r in ranks))
    tied = len(sides) == 2 and len(odd) * 2 == len(found)
    if tied and len(barrier) == 1:
        odd, rest = tuple(sorted(barrier[0])), next(side for side in sides if side is not barrier[0])
    why = ranks_do(odd, f"wait in another call than {ranks_text(rest)}")
    if "" not in (theirs := (found[odd[0]].call, found[rest[0]].call)) and len(calls) > 1:
        why = ranks_do(odd, f"wait in {theirs[0]}, {ranks_text(rest)} in {theirs[1]}")
    proof = (of_stack(found[odd[0]]), of_stack(found[rest[0]]))
    if tied and len(barrier) != 1:
        yield Clue((), cause, 4, "stack", why, proof, tuple(sorted(found)))
    elif tied or len(odd) * 2 < len(found):
        yield Clue(odd, cause, 3 if tied else 5 if len(calls) > 1 else 4, "stack", why, proof)


def _all_alike(run: Run, found: Mapping[int, Stack]) -> Iterator[Clue]:
    """All ranks of the job timed out in the same call, so that none is missing: what they wait in does not meet.

    Who finds its peers gone there had not waited as long as they: it came too late.
    """
    said = complaints(run)
    late = found.keys() & said.late.keys()
    if recorded(run).dumps:
        return  # they tell of each rank's groups
    if len(late) * 2 <= len(found) or found.keys() & said.own.keys() or len(found) <= max(world(run)):
        return  # of ranks without a gap, so that nobody is missing
    first = found[min(late)]
    if after := tuple(sorted(found.keys() & said.closed.keys() - late)):
        why = f"{ranks_do(after, 'reach')} {first.call} when the others have timed out there and left"
        yield Clue(after, "never_entered", 3, "stack", why, tuple(of_stack(found[rank]) for rank in after[:_SHOWN]))
        return
    why = f"{all_ranks(len(found))} wait in {first.call}, and none is missing: their groups, order or sizes differ"
    yield Clue((), "collective_mismatch", 5, "stack", why, tuple(of_stack(s) for s in list(found.values())[:_SHOWN]))


def _own_frames(stack: Stack) -> str:
    """The frames of the program itself: where inside a library's call a thread stands differs from one to the next."""
    own = [f.text for f in stack.frames if not is_library(f.file)]
    return "\n".join(own or [f.text for f in stack.frames])


def _sides(found: Mapping[int, Stack], key: Callable[[Stack], str]) -> list[list[int]]:
    """Give the ranks by what they wait in, the fewest first."""
    sides: dict[str, list[int]] = {}
    for rank, stack in found.items():
        sides.setdefault(key(stack), []).append(rank)
    return sorted(sides.values(), key=len)


@rule(
    "HNG023 waiting-stack",
    "events metrics stack_frames",
    severity="warning",
    confidence="low",
    cause="waits_in_collective",
)
def waiting_stack(run: Run) -> Findings:
    """Find dumps of which each waits in a collective or for the loader, where nothing else says how the run ended."""
    dumps = [stack for stack in main_threads(run) if not stack.ended]
    fetching = all(stack.fetching for stack in dumps)
    stepping = any(stands_for("call_of_every_step", stack.call) for stack in dumps) and not fetching
    if not dumps or stepping or any(stack.starting for stack in dumps):
        return
    if marks_of(run).final is not None or any(f.weight > Weight.STOP for f in standing(run)):
        return
    steps = metric_records(run).select("step").drop_nulls().collect()["step"]
    if steps.is_empty():
        return
    last = int(steps[-1])
    first = dumps[0]
    who = f"rank {first.rank}" if first.rank >= 0 else "the process"
    own = next((f", called in {f.text}," for f in first.frames if not is_library(f.file)), "")
    yield waiting_stack.finding(
        f"{who} waits {'for a worker of the loader' if fetching else f'in {_named(first)}'}{own} after step {last}",
        f"{_COMES[fetching]}, and the log has neither an error nor an end",
        proof(*map(_evidence, dumps[:_SHOWN])),
        Onset(step=last, step_lo=last, rank=first.rank if first.rank >= 0 else None),
        numbers={"dumps": len(dumps)},
        cause="loader_stalled" if fetching else "waits_in_collective",
    )


def _named(stack: Stack) -> str:
    """The collective that the innermost frames are in; `wait` is the last part of each."""
    outer = iter(stack.frames)
    call = next((f.function for f in outer if f.function == stack.call), stack.call)
    after = next(outer, None)
    return after.function if call == "wait" and after is not None and is_library(after.file) else call


def _evidence(stack: Stack) -> Evidence:
    inner = " < ".join(frame.text for frame in stack.frames[:_SHOWN])
    rank = stack.rank if stack.rank >= 0 else None
    return Evidence(stack.source, Locator(line=stack.line), f"{stack.state or 'state unknown'}: {inner}", rank=rank)
