"""HNG008 stack-outlier: a few ranks stand outside any collective while the others wait inside one.

What it detects: stacks (py-spy, faulthandler, pystack, and tracebacks of ranks that waited or were stopped) in which
most ranks wait for others and a few do something else, or in which a few wait in another call than the rest.

Why it matters: the leaf frame of the outlier is the answer: a read, a save, an evaluation, a loop.

How it decides: waiting frames are those of collectives, of `backward` (DDP waits inside it) and of device
synchronization. Outliers are ranks without any of them. When all wait, the smaller set of calls is named; of equal
halves the one in a barrier, where the others are in training's own collectives; else equal halves, and rings of sends
and receives, name nobody. Where all ranks of the job timed out in the same call none is missing: they wait in
collectives that do not meet. Tracebacks count where every rank left one and none was killed. Stacks taken after a
rank's own end are left out.

What else looks like this: a dump that was taken before the stall; a rank that was already past its time-out.

What to do next: open the leaf frame of the outlier.

References: py-spy; PyTorch, torch.distributed.debug.

Example:
    ```stack_frames source,rank,thread_name,seq,depth,function,file,line,kind,state
    s/rank0.txt,0,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    s/rank1.txt,1,MainThread,0,0,read_shard,loader.py,31,python,idle
    s/rank2.txt,2,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    ```
    => HNG008 info confidence=medium rank=1 cause=slow_storage_read causal=context weight=6
Not this:
    ```stack_frames source,rank,thread_name,seq,depth,function,file,line,kind,state
    s/rank0.txt,0,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    s/rank1.txt,1,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.stacks import Stack, stacks
from forensics.case.errors.exits import exits
from forensics.case.rank_spans import all_ranks, ranks_do, ranks_text
from forensics.case.world import world
from forensics.knowledge.signals import is_killed
from forensics.rules.hang.clue import Clue, gives_clues, of_stack
from forensics.rules.kit import Run

_SHOWN = 3
#: All ranks reduce gradients; a barrier is what a rank comes to that left the loop, or takes another branch.
_BARRIER = "barrier"


@gives_clues()
def stack_outlier(run: Run) -> Iterator[Clue]:
    """Outliers among the stacks."""
    found = {r: s for r, s in stacks(run).items() if s.frames and not s.ended}
    if len(found) < 2:
        return
    inside = {r: s for r, s in found.items() if s.inside or s.starting}
    outside = {r: s for r, s in found.items() if r not in inside}
    late = complaints(run).victims
    free = {r: s for r, s in outside.items() if r not in late} or outside
    if inside and free and len(free) * 2 <= len(found):
        yield from _outside(free, inside)
    elif not outside:
        yield from _all_inside(run, inside)


def _outside(free: Mapping[int, Stack], inside: Mapping[int, Stack]) -> Iterator[Clue]:
    starting = all(s.starting for s in inside.values())
    others = next(iter(inside.values()))
    for rank, stack in free.items():
        work = stack.work or ("host_stall_loop" if stack.running else "host_stall")
        cause = "init_hang" if starting else work
        why = f"rank {rank} is in {stack.frames[0].text} while {ranks_do(sorted(inside), 'wait for others')}"
        yield Clue((rank,), cause, 6, "stack", why, (of_stack(stack), of_stack(others)))


def _all_inside(run: Run, found: Mapping[int, Stack]) -> Iterator[Clue]:
    """All wait: name the smaller set of ranks by the call that they wait in."""
    if all(s.p2p for s in found.values()):
        proof = tuple(of_stack(s) for s in list(found.values())[:_SHOWN])
        yield Clue((), "p2p_cycle", 5, "stack", "all ranks wait in a send or a receive", proof, tuple(sorted(found)))
        return
    raised = any(s.raised for s in found.values())
    if raised and (len(found) < len(world(run)) or _died(run)):
        return
    calls = _sides(found, lambda stack: stack.call)
    # a traceback has other frames than a dump of the same call
    sides = calls if raised or len(calls) > 1 else _sides(found, lambda stack: "\n".join(f.text for f in stack.frames))
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
    """All ranks of the job timed out in the same call, so that none is missing: what they wait in does not meet."""
    said = complaints(run)
    late = found.keys() & said.late.keys()
    if recorded(run).dumps:
        return  # they tell of each rank's groups
    if len(late) * 2 <= len(found) or found.keys() & said.own.keys() or len(found) <= max(world(run)):
        return  # of ranks without a gap, so that nobody is missing
    first = found[min(late)]
    why = f"{all_ranks(len(found))} wait in {first.call}, and none is missing: their groups, order or sizes differ"
    yield Clue((), "collective_mismatch", 5, "stack", why, tuple(of_stack(s) for s in list(found.values())[:_SHOWN]))


def _died(run: Run) -> bool:
    """Whether a rank was ended by a signal that no launcher sends: the others raise wherever they were."""
    return any(is_killed(end.code) and not end.forced for end in exits(run).by_rank.values())


def _sides(found: Mapping[int, Stack], key: Callable[[Stack], str]) -> list[list[int]]:
    """Give the ranks by what they wait in, the fewest first."""
    sides: dict[str, list[int]] = {}
    for rank, stack in found.items():
        sides.setdefault(key(stack), []).append(rank)
    return sorted(sides.values(), key=len)
