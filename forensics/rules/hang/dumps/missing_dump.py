"""HNG007 missing-dump: all ranks but a few left a dump, so those few were dead, frozen or held the interpreter lock.

What it detects: ranks without a flight-recorder dump where most others left one at the same time.

Why it matters: what cannot be written is evidence too. A live process that cannot write a dump holds the interpreter
lock or is stopped; a dead one writes nothing.

How it decides: files of one kind (equal but for their numbers) exist for more than half of the ranks; ranks without
one, that complained of no peer, are named. Where a stack shows the process alive, the cause is the interpreter lock.

What else looks like this: dumps that were not all copied from the nodes.

What to do next: look for the rank's process state and for kernel lines of its node.

References: PyTorch, ProcessGroupNCCL heartbeat monitor.

Example:
    ```collectives source,rank,group,ranks,seq,op,state,attrs
    fr/trace_rank_0,0,0,"[0, 1, 2]",7,all_reduce,scheduled,{}
    fr/trace_rank_1,1,0,"[0, 1, 2]",7,all_reduce,scheduled,{}
    ```
    => HNG007 info confidence=low rank=2 cause=no_dump causal=context weight=3
Not this:
    ```collectives source,rank,group,ranks,seq,op,state,attrs
    fr/trace_rank_0,0,0,"[0, 1]",7,all_reduce,scheduled,{}
    fr/trace_rank_1,1,0,"[0, 1]",7,all_reduce,scheduled,{}
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.collectives import recorded
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.stacks import stacks
from forensics.case.rank_spans import ranks_text
from forensics.case.world import world
from forensics.rules.hang.clue import Clue, gives_clues, of_stack
from forensics.rules.kit import Evidence, Locator, Run


@gives_clues()
def missing_dump(run: Run) -> Iterator[Clue]:
    """Ranks without a dump that did not complain either."""
    told = recorded(run)
    if not told.dumps:
        return
    everyone = world(run)
    best = max(told.families.values(), key=len)
    said = complaints(run)
    missing = everyone - best - said.victims - frozenset(said.own) - told.ranks
    if not missing or len(best) * 2 <= len(everyone):
        return
    alive = {r: s for r, s in stacks(run).items() if r in missing}
    source = min(s for r, s in told.dumps.items() if r in best)
    there = Evidence(source, Locator(), f"dumps of {ranks_text(sorted(best))}; none of {ranks_text(sorted(missing))}")
    dead, stalled = missing - alive.keys(), missing & alive.keys()
    for group, cause, how in (
        (dead, "no_dump", "left no dump"), (stalled, "host_stall_gil", "alive, yet wrote no dump")
    ):  # fmt: skip
        if group:
            ranks = tuple(sorted(group))
            proof = (there, *(of_stack(alive[r]) for r in ranks if r in alive))
            yield Clue(ranks, cause, 3, "recorder", f"{ranks_text(ranks)} {how}", proof[:4])
