"""HNG009 named-by-the-library: a library's own check names the rank that did not come, or that differs.

What it detects: monitored_barrier, the desync report, DDP's check of parameter shapes, the interpreter-lock line of the
heartbeat monitor, NCCL's check of calls, and Horovod's list of missing ranks.

Why it matters: these are statements about a certain rank, not complaints about some peer.

How it decides: the ranks that the line names. DDP's shape check is printed by every rank that differs from rank 0: when
more than half of the ranks print it, rank 0 is the odd one.

The report of NCCL's RAS service numbers the ranks of one communicator, not of the job, and names nobody here.

What else looks like this: `successfully reached monitoredBarrier, but received errors`, which a victim prints, and
`from rank N` in dump signals, which names the first rank to notice.

What to do next: read the last lines of the named rank.

References: PyTorch, torch.distributed, "Monitored barrier"; Horovod, "Stall check".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,monitored-barrier,[Rank 0]: Rank 5 failed to pass monitoredBarrier in 9000 ms,"{""role"":""root"",""shape"":""hang""}"
    ```
    => HNG009 info confidence=medium rank=5 cause=never_entered causal=context weight=6
Not this:
    ```events source,line,rank,code,text,attrs
    a.log,9,4,monitored-barrier,"Rank 4 successfully reached monitoredBarrier, but received errors while waiting","{""role"":""root"",""shape"":""hang""}"
    ```
    => nothing
"""  # noqa: E501 - a printed line is one cell

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forensics.analyses.hang.lines import matching
from forensics.case.rank_spans import listed, ranks_text
from forensics.case.world import world
from forensics.knowledge import errors
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Run, event_evidence

#: Groups of a pattern that name the ranks it is about.
_NAMING = ("ranks", "missing", "rank", "rank__2")


@gives_clues()
def named_rank(run: Run) -> Iterator[Clue]:
    """One clue for each kind of statement."""
    for line, clue in errors.clues("log"):
        named: dict[int, Evidence] = {}
        for row, hit in matching(run, line.compiled, *line.needles):
            if clue.holds(hit):
                named |= {rank: event_evidence(row) for rank in _ranks(row, hit) if rank not in named}
        if clue.majority is not None and len(named) * 2 > len(world(run)) > 1:
            named = {clue.majority: next(iter(named.values()))}
        if named:
            ranks = tuple(sorted(named))
            why = f"{ranks_text(ranks)} {clue.words}"
            yield Clue(ranks, clue.cause, clue.weight, "log", why, tuple(named.values())[:4], stated=True)


def _ranks(row: Mapping[str, Any], hit: re.Match[str]) -> Sequence[int]:
    """Give the ranks that a line names; where its kind names none, the one that prints it."""
    said = hit.groupdict()
    if any(name in said for name in _NAMING):
        return listed(next((said[name] for name in _NAMING if said.get(name)), ""))
    return () if row["rank"] is None else (row["rank"],)
