"""HNG014 stuck-at-start: the job never came together: ranks are missing, late, or cannot reach the store.

What it detects: stores and rendezvous that time out, keys that name the missing peer, ports in use.

Why it matters: nothing was trained; this is launch configuration or a missing node, not the program.

How it decides: `k/n clients joined` names the ranks that left no file; the key that ranks wait for ends in the number
of the rank that did not write it; a rendezvous that timed out with too few nodes names nobody.

What else looks like this: rendezvous errors after a failure elsewhere, which are a consequence.

What to do next: check MASTER_ADDR, MASTER_PORT, WORLD_SIZE and the firewall on every node; look for the missing rank.

References: PyTorch, torch.distributed, "TCPStore"; torch.distributed.elastic, "Rendezvous".

Example:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,store-timeout,"wait timeout after 9000ms, keys: /default_pg/0//cpu//0/3","{""role"":""symptom"",""shape"":""hang"",""cause"":""store_timeout""}"
    b.log,9,1,store-timeout,"wait timeout after 9000ms, keys: /default_pg/0//cpu//0/3","{""role"":""symptom"",""shape"":""hang"",""cause"":""store_timeout""}"
    ```
    => HNG014 info confidence=medium rank=3 cause=init_hang causal=context weight=6
Not this:
    ```events source,line,rank,code,text,attrs
    a.log,9,0,note,waiting for clients,"{""role"":""context""}"
    ```
    => nothing
"""  # noqa: E501 - a printed line is one cell

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from forensics.analyses.hang.complaints import placed
from forensics.analyses.hang.last_seen import last_seen
from forensics.analyses.hang.lines import matching
from forensics.case.errors.exits import exits
from forensics.case.rank_spans import ranks_text
from forensics.rules.hang._clue import Clue, of_failure, shown
from forensics.rules.kit import Evidence, Findings, Run, event_evidence, rule

_CLIENTS = re.compile(r"waiting for clients\. (?P<joined>\d{1,6})/(?P<size>\d{1,6}) clients joined")
_KEY = re.compile(
    r"(?:wait timeout after \d+ ?ms, keys: |Timeout waiting for key: )(?P<key>[\w/:\-.]*?)(?P<rank>\d{1,6})(?![\w/])"
)
_RENDEZVOUS = re.compile(r"RendezvousTimeoutError")
_PORT = "port_in_use"


@rule("hang", needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"))
def start(run: Run) -> Findings:
    """Show what kept the job from coming together."""
    yield from shown(start, clues(run))


def clues(run: Run) -> Iterator[Clue]:
    """Missing clients, awaited keys, rendezvous and ports."""
    missing = list(_missing(run))
    yield from missing or _keys(run)
    yield from _rendezvous(run)
    yield from _port(run)


def _missing(run: Run) -> Iterator[Clue]:
    for row, hit in matching(run, _CLIENTS, "waiting for clients"):
        joined, size = int(hit["joined"]), int(hit["size"])
        absent = tuple(sorted(set(range(size)) - last_seen(run).keys()))
        named = absent if 0 < len(absent) <= size - joined else ()
        why = f"only {joined} of {size} ranks joined" + (f"; {ranks_text(named)} left no file" if named else "")
        yield Clue(named, "init_hang", 6, "log", why, (event_evidence(row),))
        return


def _keys(run: Run) -> Iterator[Clue]:
    awaited: Counter[int] = Counter()
    proof: dict[int, Evidence] = {}
    for row, hit in matching(run, _KEY, "wait timeout after", "Timeout waiting for key"):
        rank = int(hit["rank"])
        awaited[rank] += 1
        proof.setdefault(rank, event_evidence(row))
    if awaited:
        rank, count = awaited.most_common(1)[0]
        why = f"rank {rank} did not write a key to the store for which {count} of the others' messages wait"
        yield Clue((rank,), "init_hang", 6, "log", why, (proof[rank],))


def _rendezvous(run: Run) -> Iterator[Clue]:
    hits = [row for row, _ in matching(run, _RENDEZVOUS, "RendezvousTimeout")]
    if hits and not exits(run).by_rank:
        yield Clue(
            (),
            "rendezvous_timeout",
            5,
            "log",
            "too few nodes joined the rendezvous in time",
            (event_evidence(hits[0]),),
        )


def _port(run: Run) -> Iterator[Clue]:
    for failure in placed(run):
        if failure.cause == _PORT:
            why = "the store's port is in use: rank 0 could not listen on it"
            yield Clue((0,), _PORT, 8, "log", why, (of_failure(failure),))
            return
