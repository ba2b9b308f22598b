"""What lines say of ranks: a library's own check, the kernel, collectives that differ, and last words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from forensics.analyses.hang.collectives import sizes_in, timed_out_in
from forensics.analyses.hang.complaints import complaints
from forensics.analyses.hang.differs import Signature, differing, kind_cause, slip_by_steps
from forensics.analyses.hang.last_seen import WAITS, last_seen
from forensics.analyses.hang.lines import matching
from forensics.case.errors.coded import events_of, events_telling
from forensics.case.errors.hosts import days_apart
from forensics.case.errors.kinds import attributes
from forensics.case.errors.named import rank_at, rank_named
from forensics.case.rank_spans import FEWEST_THAT_VOTE, listed, ranks_do, ranks_text
from forensics.case.world import world
from forensics.knowledge import errors
from forensics.knowledge.doing import by_words
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import Clue, gives_clues, of_seen
from forensics.rules.kit import Evidence, Run, event_evidence

#: Groups of a pattern that name the ranks it is about.
_NAMING = ("ranks", "missing", "rank", "rank__2")


@gives_clues("HNG009 named-by-the-library")
def named_rank(run: Run) -> Iterator[Clue]:
    """One clue for each kind of statement."""
    for line, clue in errors.clues("log"):
        named: dict[int, Evidence] = {}
        hits = list(matching(run, line.compiled, *line.needles))
        for row, first in hits:
            for hit in [*line.compiled.finditer(row["text"] or "")] or [first]:
                if clue.holds(hit):
                    named |= {rank: event_evidence(row) for rank in _ranks(row, hit) if rank not in named}
        if "arrived" in line.compiled.groupindex:
            named = _not_among(run, line, [row for row, _ in hits])
        if clue.waits:
            waiting = {row["rank"] for row, _ in hits}
            named = {rank: proof for rank, proof in named.items() if rank not in waiting}
        if clue.majority is not None and len(named) * 2 > len(world(run)) > 1:
            named = {clue.majority: next(iter(named.values()))}
        if named:
            ranks = tuple(sorted(named))
            why = f"{ranks_text(ranks)} {clue.words}"
            said = complaints(run)
            cause = clue.gone if clue.gone and said.closed and not said.late else clue.cause
            yield Clue(ranks, cause, clue.weight, "log", why, tuple(named.values())[:4], stated=True)


def _ranks(row: Mapping[str, Any], hit: re.Match[str]) -> Sequence[int]:
    """Give the ranks that a line names; where its kind names none, the one that prints it."""
    said = hit.groupdict()
    if any(name in said for name in _NAMING):
        return listed(next((said[name] for name in _NAMING if said.get(name)), ""))
    return () if row["rank"] is None else (row["rank"],)


def _not_among(run: Run, line: errors.ErrorLine, rows: Sequence[Mapping[str, Any]]) -> dict[int, Evidence]:
    """The ranks that the longest list of those that arrived leaves out, where these are fewer."""
    told = [(set(listed(hit["arrived"])), row) for row in rows for hit in line.compiled.finditer(row["text"] or "")]
    if not told:
        return {}
    arrived, row = max(told, key=lambda one: len(one[0]))
    last = max(max(ranks, default=0) for ranks, _ in told)
    missing = {*world(run), *range(min(last + 1, 2 * len(arrived)))} - arrived  # of more, more are missing than arrived
    return {rank: event_evidence(row) for rank in missing} if len(missing) < len(arrived) else {}


#: What a line proves that names a rank, or a process of one.
_OF_RANK = 3.0


@gives_clues("HNG017 host-lines")
def host_lines(run: Run) -> Iterator[Clue]:
    """One clue for each kind of fault and rank."""
    seen: set[tuple[str, int | None]] = set()
    for line, clue in errors.clues("host"):
        back = errors.by_id().get(line.taken_back_by)
        until = {row["source"]: row["line"] for row, _ in matching(run, back.compiled, *back.needles)} if back else {}
        hits = list(matching(run, line.compiled, *line.needles))
        blamed = _blamed(hits)
        for row, hit in hits:
            if not clue.holds(hit) or row["line"] < until.get(row["source"], 0) or days_apart(run, row["t_ns"]):
                continue
            said = {name.partition("__")[0]: said for name, said in hit.groupdict().items() if said}
            # who waits for an adapter in vain is its victim
            known = _peer(run, line, said["peer"]) if "peer" in said else None
            known = rank_named(run, said, row["text"] or "") if known is None else known
            victim = known is None and said.get("peer") in blamed
            rank = None if victim else known if known is not None else row["rank"]
            if (clue.cause, rank) not in seen:
                seen.add((clue.cause, rank))
                named, whose = ((rank,), f" on rank {rank}") if rank is not None else ((), "")
                weight = _OF_RANK if named else clue.weight
                words = f"{clue.words}{whose}"
                stated = known is not None
                yield Clue(named, clue.cause, weight, "host", words, (event_evidence(row),), stated=stated)


def _blamed(hits: Iterable[tuple[Mapping[str, Any], re.Match[str]]]) -> frozenset[str]:
    """Addresses that several ranks name as the one that they lost: each of these is its victim."""
    speakers: dict[str, set[int]] = {}
    for row, hit in hits:
        if (peer := hit.groupdict().get("peer")) and row["rank"] is not None:
            speakers.setdefault(peer, set()).add(row["rank"])
    return frozenset(peer for peer, ranks in speakers.items() if len(ranks) > 1)


def _peer(run: Run, line: errors.ErrorLine, peer: str) -> int | None:
    """The rank of an address: by what ranks say they use, else the only one of several ranks that does not name it."""
    known = rank_at(run, peer)
    if known is not None or len(world(run)) < FEWEST_THAT_VOTE:
        return known
    host = peer.partition("<")[0]
    hits = matching(run, line.compiled, *line.needles)
    speakers = {row["rank"] for row, hit in hits if (hit.groupdict().get("peer") or "").partition("<")[0] == host}
    others = world(run) - speakers
    return min(others) if len(others) == 1 else None


@gives_clues("HNG015 frozen-process", "events")
def frozen(run: Run) -> Iterator[Clue]:
    """Stopped and uninterruptible processes."""
    states = events_of(run, ["proc-state"], ("source", "line"))
    for row in states.drop_nulls("rank").iter_rows(named=True) if states.height else ():
        said = attributes(row["attrs"])
        rank, state, where = row["rank"], said.get("state", ""), said.get("wchan", "")
        if state in ("T", "t"):
            why = f"rank {rank} is stopped (state T)"
            yield Clue((rank,), "frozen_process", 6, "host", why, (event_evidence(row),))
        elif state == "D":
            cause = "slow_storage_read" if stands_for("storage_wait", where) else "host_stall"
            why = f"rank {rank} waits in the kernel and cannot be interrupted ({where or 'state D'})"
            yield Clue((rank,), cause, 3, "host", why, (event_evidence(row),))


_OTHER = lazily(r"OpType=(?P<op>\w+)(?:, TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<dtype>\w+))?")
_SAID = lazily(
    r"mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=(?P<seq>\d+),? ?)?OpType=(?P<op>\w+)"
    r"(?:, TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<dtype>\w+))?"
)


#: The check of DETAIL stops before anything hangs; a watchdog names no group.
_BY_CHECK, _BY_WATCHDOG = 8, 5


@gives_clues("HNG010 fingerprints-differ")
def fingerprints(run: Run) -> Iterator[Clue]:
    """The vote over what ranks say of themselves, else over what their watchdogs say."""
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
    if said and len(set(said.values())) == 1:  # the odd one printed nothing, and all who speak name it
        said = {**_of_others(run), **said}
    weight = _BY_CHECK if said else _BY_WATCHDOG
    if not said:
        said, proof = _timed_out(run)
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
    quotes, tied = tuple(proof[r] for r in first), () if odd else tuple(sorted(said))
    yield Clue(odd, cause, weight, "log", why, quotes, tied, stated=weight == _BY_CHECK)


def _timed_out(run: Run) -> tuple[dict[int, Signature], dict[int, Evidence]]:
    """What all ranks timed out in, where each says the same number: ranks of several groups would say several."""
    told, late = timed_out_in(run), complaints(run).late
    if len(told) != 1 or len(late) < FEWEST_THAT_VOTE or frozenset(late) != world(run):
        return {}, {}
    seq, ops = next(iter(told.items()))
    if ops.keys() != late.keys():
        return {}, {}
    sizes = sizes_in(run, seq)
    return {r: (op, sizes[r], "") for r, op in ops.items()}, {r: of_failure(late[r]) for r in ops}


def _of_others(run: Run) -> Mapping[int, Signature]:
    """What the lines say that another rank runs."""
    found: dict[int, Signature] = {}
    for attrs in map(attributes, events_telling(run, "collective_mismatch")["attrs"]):
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
    why, tied = f"{sides}: another {kind}", tuple(sorted(both))
    yield Clue((), kind_cause(kind, votes), 8, "log", why, (proof,), tied, stated=True)


@gives_clues("HNG016 last-words", "events metrics")
def last_words(run: Run) -> Iterator[Clue]:
    """One clue for each rank whose last words are telling, when few ranks say so."""
    seen = last_seen(run)
    found: list[Clue] = []
    for rank, last in seen.items():
        said = by_words(last.words) if last.source else None
        if said is not None and said.cause != WAITS:
            why = f"rank {rank} was {said.doing} when it was last heard of"
            found.append(Clue((rank,), said.cause, 2, "words", why, (of_seen(last),)))
    if len(found) == 1 or len(found) * 2 < len(seen):
        yield from found
