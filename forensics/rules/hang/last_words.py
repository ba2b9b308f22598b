"""HNG016 last-words: what a suspected rank printed last tells what it was at: saving, evaluating, or leaving.

What it detects: last lines that speak of writing a checkpoint, of an evaluation or a preparation on that rank alone, of
the end of its data, or of leaving early.

Why it matters: the same wait of all others is a bug in one case and slow storage in another.

How it decides: the words of the last line of a rank's own log. They add little weight and never name a rank alone.

What else looks like this: a rank that had long gone on and prints rarely.

What to do next: for work on one rank, raise the time-out of that group or do the work before the barrier; for slow
storage, measure it.

References: PyTorch, torch.distributed, "barrier" and time-outs.

Example:
    ```events source,line,rank,code,text,attrs
    r0.log,30,0,last_line,saving checkpoint to /data/out/step_90,"{""role"":""context""}"
    ```
    => HNG016 info confidence=low rank=0 cause=slow_storage_checkpoint causal=context weight=2
Not this:
    ```events source,line,rank,code,text,attrs
    r0.log,30,0,last_line,step 90 loss 2.5,"{""role"":""context""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.hang.last_seen import last_seen
from forensics.knowledge.doing import by_words
from forensics.rules.hang.clue import Clue, gives_clues, of_seen
from forensics.rules.kit import Run


@gives_clues(needs=("events", "metrics"))
def last_words(run: Run) -> Iterator[Clue]:
    """One clue for each rank whose last words are telling, when few ranks say so."""
    seen = last_seen(run)
    found: list[Clue] = []
    for rank, last in seen.items():
        said = by_words(last.words) if last.source else None
        if said is not None:
            why = f"rank {rank} was {said.doing} when it was last heard of"
            found.append(Clue((rank,), said.cause, 2, "words", why, (of_seen(last),)))
    if len(found) == 1 or len(found) * 2 < len(seen):
        yield from found
