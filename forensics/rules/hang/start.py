"""A job that never started together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forensics.analyses.hang.complaints import placed
from forensics.analyses.hang.last_seen import last_seen
from forensics.analyses.hang.lines import matching
from forensics.case.errors.exits import exits
from forensics.case.rank_spans import ranks_text
from forensics.case.world import world
from forensics.knowledge import errors
from forensics.patterns import lazily
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Evidence, Run, event_evidence

#: The number of the rank that did not write it ends a key of the store.
_KEY = lazily(r"[\w/:\-.]*?(?P<rank>\d{1,6})(?![\w/])")


@gives_clues("HNG014 stuck-at-start")
def start(run: Run) -> Iterator[Clue]:
    """Missing clients, awaited keys, rendezvous and ports."""
    awaited = list(_awaited(run))
    yield from _missing(run, awaited) or _keys(awaited)
    yield from _rendezvous(run)
    yield from _failures(run)


def _awaited(run: Run) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """Events that say for whom the store waits, with what each says by the names of the groups of its row."""
    for line in map(errors.by_id().__getitem__, sorted(errors.telling("awaited"))):
        for row, hit in matching(run, line.compiled, *line.needles):
            yield row, {name.partition("__")[0]: said for name, said in hit.groupdict().items() if said}


def _missing(run: Run, awaited: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> list[Clue]:
    for row, said in awaited:
        if "joined" in said:
            joined, size = int(said["joined"]), int(said["expected"])
            absent = tuple(sorted(set(range(size)) - last_seen(run).keys()))
            named = absent if 0 < len(absent) <= size - joined else ()
            why = f"only {joined} of {size} ranks joined" + (f"; {ranks_text(named)} left no file" if named else "")
            return [Clue(named, "init_hang", 6, "log", why, (event_evidence(row),))]
        if "host" in said and not world(run) - {row["rank"] for row, said in awaited if "host" in said}:
            why = f"nobody answered at {said['host']}, port {said['port']}, where the ranks meet"
            return [Clue((), "init_hang", 6, "log", why, (event_evidence(row),))]
    return []


def _keys(awaited: Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]) -> Iterator[Clue]:
    count: Counter[int] = Counter()
    proof: dict[int, Evidence] = {}
    for row, said in awaited:
        if (hit := _KEY.match(said.get("keys", ""))) is not None:
            rank = int(hit["rank"])
            count[rank] += 1
            proof.setdefault(rank, event_evidence(row))
    if count:
        rank, messages = count.most_common(1)[0]
        why = f"rank {rank} did not write a key to the store for which {messages} of the others' messages wait"
        yield Clue((rank,), "init_hang", 6, "log", why, (proof[rank],))


def _rendezvous(run: Run) -> Iterator[Clue]:
    for line, clue in errors.clues("rendezvous"):
        hits = [row for row, hit in matching(run, line.compiled, *line.needles) if clue.holds(hit)]
        if hits and not exits(run).by_rank:
            yield Clue((), clue.cause, clue.weight, "log", clue.words, (event_evidence(hits[0]),))


def _failures(run: Run) -> Iterator[Clue]:
    known = {clue.cause: clue for _, clue in errors.clues("failure")}
    for failure in placed(run):
        if (clue := known.get(failure.cause)) is not None:
            ranks = () if clue.rank is None else (clue.rank,)
            yield Clue(ranks, clue.cause, clue.weight, "log", clue.words, (of_failure(failure),))
            return
