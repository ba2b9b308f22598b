"""HNG021 behind-in-order: all ranks time out, and a few of them wait in an earlier collective than the others.

What it detects: watchdog lines of all ranks of which some give a smaller sequence number.

Why it matters: when everybody complains, the complaint names nobody. Collectives of a group are numbered in order, so
the rank with the smallest number is the one that did not come to where the others wait.

How it decides: of the ranks whose watchdog timed out, most wait in one sequence number of one group, and fewer than
half in a smaller one. Where the lines do not name the group the numbers may be of different groups, and the weight is
less.

What else looks like this: ranks of different groups, which count apart.

What to do next: read the last lines of the rank that is behind, before its time-out.

References: PyTorch, ProcessGroupNCCL, on the sequence numbers of its work.

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,nccl-watchdog,Watchdog caught collective operation timeout,"{""role"":""symptom"",""shape"":""hang""}"
    b.log,9,1,nccl-watchdog,Watchdog caught collective operation timeout,"{""role"":""symptom"",""shape"":""hang""}"
    c.log,9,2,nccl-watchdog,Watchdog caught collective operation timeout,"{""role"":""symptom"",""shape"":""hang""}"
    ```
    ```collectives source,line,rank,seq,op,state,attrs
    a.log,9,0,903,allreduce,timed_out,{}
    b.log,9,1,902,allreduce,timed_out,{}
    c.log,9,2,903,allreduce,timed_out,{}
    ```
    => HNG021 info confidence=low rank=1 cause=never_entered causal=context weight=3
Not this: all wait in the same collective
    ```events source,line,rank,code,text,attrs
    a.log,9,0,nccl-watchdog,Watchdog caught collective operation timeout,"{""role"":""symptom"",""shape"":""hang""}"
    b.log,9,1,nccl-watchdog,Watchdog caught collective operation timeout,"{""role"":""symptom"",""shape"":""hang""}"
    ```
    ```collectives source,line,rank,seq,op,state,attrs
    a.log,9,0,903,allreduce,timed_out,{}
    b.log,9,1,903,allreduce,timed_out,{}
    ```
    => nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from forensics.analyses.hang.collectives import recorded, timed_out_in
from forensics.analyses.hang.complaints import complaints
from forensics.case.rank_spans import ranks_do, ranks_text
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Run

#: Two ranks with two numbers are even.
_FEWEST = 3
_SHOWN = 4


@gives_clues()
def behind(run: Run) -> Iterator[Clue]:
    """The ranks whose time-out has a smaller number than that of most."""
    told, late = recorded(run), complaints(run).late
    groups = {entry.key for entries in told.pending.values() for entry in entries}
    named = {rank: min(entry.seq for entry in entries) for rank, entries in told.pending.items() if entries}
    if len(groups) == 1 and late.keys() <= named.keys():
        waits, weight, where = named, 5.0, f" of group {next(iter(groups))[0]}"
    else:
        waits, weight, where = {rank: min(seqs) for rank, seqs in told.timed_out.items() if seqs}, 3.0, ""
    waits = {rank: seq for rank, seq in waits.items() if rank in late}
    found = _behind(waits)
    if found is None:
        return
    ranks, most = found
    at = sorted({waits[rank] for rank in ranks})
    why = (
        f"{ranks_do(ranks, 'wait')} in collective {', '.join(map(str, at))}{where}, while "
        f"{ranks_text(sorted(waits.keys() - set(ranks)))} wait in {most}"
    )
    first = sorted(waits, key=lambda rank: (rank not in ranks, rank))[:_SHOWN]
    cause = "uneven_data" if _ended(timed_out_in(run), ranks, at, most) else "never_entered"
    yield Clue(ranks, cause, weight, "log", why, tuple(of_failure(late[rank]) for rank in first))


def _ended(ops: Mapping[int, Mapping[int, str]], ranks: Sequence[int], at: Sequence[int], most: int) -> bool:
    """Whether the ranks behind wait in a barrier and the others do not: their loops ended earlier."""
    mine = {op for seq in at for rank, op in ops.get(seq, {}).items() if rank in ranks}
    return bool(mine) and all("barrier" in op for op in mine) and not any("barrier" in o for o in ops[most].values())


def _behind(waits: Mapping[int, int]) -> tuple[tuple[int, ...], int] | None:
    """Give the ranks before the number in which most ranks wait, and that number; None where no rank is before it."""
    if len(waits) < _FEWEST:
        return None
    most, count = Counter(waits.values()).most_common(1)[0]
    ranks = tuple(sorted(rank for rank, seq in waits.items() if seq < most))
    return (ranks, most) if ranks and count * 2 > len(waits) else None
