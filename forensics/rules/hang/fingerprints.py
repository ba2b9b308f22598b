"""HNG010 fingerprints-differ: ranks state which collective they run, and one of them runs another one.

What it detects: the mismatch lines of TORCH_DISTRIBUTED_DEBUG=DETAIL.

Why it matters: they give operation, number, shape and type of every rank, before anything hangs.

How it decides: by majority over what each rank says of ITSELF. The half of the line that speaks of another rank is
wrong when an operation without a tensor (a barrier) is involved, so it is used only where one rank's line is all that
is left: the two ranks of that line differ, and which of them is odd is open. Equal halves name nobody, too.

What else looks like this: nothing known.

What to do next: open the call sites in the tracebacks of an odd and of a usual rank.

References: PyTorch, torch.distributed, "TORCH_DISTRIBUTED_DEBUG"; ProcessGroupWrapper.cpp.

Example:
    ```events source,line,rank,code,text,attrs
    a.log,1,0,collective-mismatch,"Detected mismatch between collectives on ranks. Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[5], TensorDtypes=Float), but Rank 1","{""role"":""root""}"
    b.log,1,1,collective-mismatch,"Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float), but Rank 0","{""role"":""root""}"
    c.log,1,2,collective-mismatch,"Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[5], TensorDtypes=Float), but Rank 1","{""role"":""root""}"
    ```
    => HNG010 info confidence=medium rank=1 cause=collective_mismatch_size causal=context weight=8
Not this:
    ```events source,line,rank,code,text,attrs
    a.log,1,0,note,Rank 0 is running collective: all_reduce,"{""role"":""context""}"
    ```
    => nothing
"""  # noqa: E501 - a printed line is one cell

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import polars as pl

from forensics.analyses.hang.differs import Signature, differing, kind_cause, slip_by_steps
from forensics.analyses.hang.lines import matching
from forensics.case.errors.attributes import attributes
from forensics.case.rank_spans import ranks_do
from forensics.knowledge.errors import telling
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Run, event_evidence

_OTHER = re.compile(r"OpType=(?P<op>\w+)(?:, TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<dtype>\w+))?")
_SAID = re.compile(
    r"mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<seq>\d+),? ?)?OpType=(?P<op>\w+)"
    r"(?:, TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<dtype>\w+))?"
)


@gives_clues(needs=("events", "metrics"))
def fingerprints(run: Run) -> Iterator[Clue]:
    """The vote over what ranks say of themselves."""
    said: dict[int, Signature] = {}
    proof: dict[int, Evidence] = {}
    for row, hit in matching(run, _SAID, "CollectiveFingerPrint"):
        rank = int(hit["rank"])
        if rank not in said:
            said[rank] = (hit["op"].lower(), hit["shape"] or "", hit["dtype"] or "")
            proof[rank] = event_evidence(row)
    if len(said) == 1:
        yield from _of_one(said, _of_others(run), next(iter(proof.values())))
        return
    votes = Counter(said.values())
    if len(votes) < 2:
        return
    best, count = votes.most_common(1)[0]
    tie = count * 2 <= len(said)
    odd = () if tie else tuple(sorted(r for r, s in said.items() if s != best))
    kind = differing(votes)
    cause = slip_by_steps(run, odd, kind_cause(kind, votes)) if odd else kind_cause(kind, votes)
    does = f"run another {kind} than {count} of {len(said)} ranks ({' '.join(best).strip()})"
    why = ranks_do(odd, does) if odd else f"an equal number of ranks {does}"
    first = sorted(proof, key=lambda r: (r not in odd, r))[:4]
    yield Clue(odd, cause, 8, "log", why, tuple(proof[r] for r in first), () if odd else tuple(sorted(said)))


def _of_others(run: Run) -> Mapping[int, Signature]:
    """What the lines say that another rank runs."""
    found: dict[int, Signature] = {}
    lines = run.scan("events").filter(pl.col("code").is_in(telling("collective_mismatch"))).select("attrs").collect()
    for attrs in map(attributes, lines["attrs"]):
        hit = _OTHER.search(attrs.get("other", ""))
        if hit is not None and attrs.get("other_rank", "").isdigit():
            found.setdefault(int(attrs["other_rank"]), (hit["op"].lower(), hit["shape"] or "", hit["dtype"] or ""))
    return found


def _of_one(said: Mapping[int, Signature], told: Mapping[int, Signature], proof: Evidence) -> Iterator[Clue]:
    """Two ranks differ by the words of one of them: which is odd cannot be said."""
    both = {**told, **said}
    votes = Counter(both.values())
    if len(votes) < 2:
        return
    sides = " and ".join(f"rank {rank} runs {' '.join(both[rank]).strip()}" for rank in sorted(both))
    kind = differing(votes)
    yield Clue(
        (), kind_cause(kind, votes), 8, "log", f"{sides}: another {kind}", (proof,), tuple(sorted(both)), stated=True
    )
