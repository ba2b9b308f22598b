"""HNG004 waited-on-by-all: dumps show ranks that others wait for and that wait for nobody themselves.

What it detects: the sinks of the wait-for graph over all process groups, or a cycle when there is no sink.

Why it matters: everybody who complains waits; only a rank that waits for nobody can have started it.

How it decides: a rank waits for a member of a group that has not enqueued what it holds pending there, and for the
peer of a send or receive that has not posted its side. Ranks that are waited for and wait for nobody are named. In a
cycle the ranks in the less used group order are named; a ring without a minority names nobody.

What else looks like this: a dump that was taken while the run was still going, where a rank is a moment behind.

What to do next: open the call site of the waiting operation, and the stack of the rank that is waited for.

References: PyTorch, "Flight Recorder for Debugging Stuck Jobs".

Example:
    ```collectives rank,group,ranks,seq,op,in_sizes,dtype,state,attrs
    0,0(default_pg),"[0, 1, 2]",7,all_reduce,[[8]],Float,scheduled,{}
    1,0(default_pg),"[0, 1, 2]",7,all_reduce,[[8]],Float,scheduled,{}
    2,0(default_pg),"[0, 1, 2]",6,all_reduce,[[8]],Float,completed,{}
    ```
    => HNG004 info confidence=medium rank=2 cause=never_entered causal=context weight=5
Not this:
    ```collectives rank,group,ranks,seq,op,in_sizes,dtype,state,attrs
    0,0(default_pg),"[0, 1]",7,all_reduce,[[8]],Float,scheduled,{}
    1,0(default_pg),"[0, 1]",7,all_reduce,[[8]],Float,scheduled,{}
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.differs import first_difference
from forensics.analyses.hang.waits import Wait, WaitGraph, wait_graph
from forensics.case.rank_spans import ranks_do, ranks_text
from forensics.rules.hang.clue import Clue, gives_clues, of_entry
from forensics.rules.kit import Evidence, Run

_SHOWN = 4


@gives_clues()
def waited_on(run: Run) -> Iterator[Clue]:
    """Sinks of the wait-for graph, or its cycle; none where ranks issued different operations, which come first."""
    graph = wait_graph(run)
    if not graph.waits or first_difference(run) is not None:
        return
    if graph.sinks:
        named = [w for w in graph.waits if set(w.awaited) & set(graph.sinks)]
        why = f"{ranks_do(graph.sinks, 'wait for nobody')} and never entered {_place(named[0])}"
        yield Clue(graph.sinks, "never_entered", 5, "recorder", why, _proof(named))
    elif graph.cyclic:
        yield _cycle(graph)


def _place(wait: Wait) -> str:
    return f"{wait.op} seq {wait.seq} of group {wait.group}"


def _proof(waits: list[Wait]) -> tuple[Evidence, ...]:
    return tuple(of_entry(wait.entry) for wait in waits[:_SHOWN])


def _cycle(graph: WaitGraph) -> Clue:
    """Name the smaller side of a cycle, when there is one."""
    sides: dict[tuple[str, int], set[int]] = {}
    for wait in graph.waits:
        sides.setdefault((wait.group, wait.seq), set()).update(wait.waiting)
    order = sorted(sides.values(), key=len)
    waits = list(graph.waits)
    everyone = tuple(sorted({r for w in waits for r in w.waiting}))
    if all(w.entry.peer is not None for w in waits):
        return Clue(
            (), "p2p_cycle", 5, "recorder", "sends and receives wait for each other in a ring", _proof(waits), everyone
        )
    if len(order) > 1 and len(order[0]) < len(order[-1]):
        few = tuple(sorted(order[0]))
        why = f"{ranks_text(few)} used the process groups in another order than the others"
        return Clue(few, "pg_order_deadlock", 4, "recorder", why, _proof(waits))
    why = "ranks wait for each other over several process groups, in equal numbers"
    return Clue((), "pg_order_deadlock", 4, "recorder", why, _proof(waits), everyone)
