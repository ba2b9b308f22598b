"""HNG008 stack-outlier: a few ranks stand outside any collective while the others wait inside one.

What it detects: stacks (py-spy, faulthandler, pystack) in which most ranks wait for others and a few do something
else, or in which a few wait in another call than the rest.

Why it matters: the leaf frame of the outlier is the answer: a read, a save, an evaluation, a loop.

How it decides: waiting frames are those of collectives, of `backward` (DDP waits inside it) and of device
synchronization. Outliers are ranks without any of them. When all wait, the smaller set of call sites is named; equal
halves, and rings of sends and receives, name nobody. Stacks taken after a rank's own end are left out.

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

from collections.abc import Iterator, Mapping

from forensics.model import Finding, Shape
from forensics.registry import rule
from forensics.rules.hang._clue import Clue, of_stack, shown
from forensics.signals.hang_complaints import complaints
from forensics.signals.hang_stacks import Stack, stacks
from forensics.signals.rank_spans import ranks_text
from forensics.store.run import Run

_SHOWN = 3


@rule("HNG008", shape=Shape.HANG, needs=("events", "metrics", "stack_frames"))
def stack_outlier(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Show ranks whose stacks differ from the others'."""
    yield from shown("HNG008", clues(run), do=("open the innermost frame of the outlier",))


def clues(run: Run) -> Iterator[Clue]:
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
        yield from _all_inside(inside)


def _outside(free: Mapping[int, Stack], inside: Mapping[int, Stack]) -> Iterator[Clue]:
    starting = all(s.starting for s in inside.values())
    others = next(iter(inside.values()))
    for rank, stack in free.items():
        work = stack.work or ("host_stall_loop" if stack.running else "host_stall")
        cause = "init_hang" if starting else work
        why = f"rank {rank} is in {stack.frames[0].text} while {ranks_text(sorted(inside))} wait(s) for others"
        yield Clue((rank,), cause, 6, "stack", why, (of_stack(stack), of_stack(others)))


def _all_inside(found: Mapping[int, Stack]) -> Iterator[Clue]:
    """All wait: name the smaller set of call sites."""
    everyone = tuple(sorted(found))
    proof = tuple(of_stack(s) for s in list(found.values())[:_SHOWN])
    if all(s.p2p for s in found.values()):
        yield Clue((), "p2p_cycle", 5, "stack", "all ranks wait in a send or a receive", proof, everyone)
        return
    sites: dict[tuple[str, ...], list[int]] = {}
    for rank, stack in found.items():
        sites.setdefault(tuple(f.text for f in stack.frames), []).append(rank)
    order = sorted(sites.values(), key=len)
    if len(order) < 2:
        return
    odd = tuple(sorted(r for ranks in order[:-1] for r in ranks))
    why = f"{ranks_text(odd)} wait(s) in another call than {ranks_text(order[-1])}"
    proof = (of_stack(found[odd[0]]), of_stack(found[order[-1][0]]))
    if len(odd) * 2 < len(found):
        yield Clue(odd, "different_collective", 4, "stack", why, proof)
    elif len(order) == 2 and len(order[0]) == len(order[1]):
        yield Clue((), "different_collective", 4, "stack", why, proof, everyone)
