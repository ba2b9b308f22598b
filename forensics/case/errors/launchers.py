"""Which end of a launcher's worker group ended the run: the launcher's own lines in order.

torchrun's agent writes one line for the worker that it saw fail first, ends the others and, while restarts are left,
starts the group anew. What a group without a training step then complains of follows from the end before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.end_markers import SURVIVED_STEPS, marks_of
from forensics.case.errors.coded import events_of
from forensics.case.errors.kinds import attributes
from forensics.case.processes.attempts import GOES_ON_RECORDS, Attempts, attempts
from forensics.case.series import keys_of
from forensics.case.steps import only
from forensics.dialects.events.elastic import FAILURE
from forensics.knowledge.errors import by_id, telling
from forensics.knowledge.signals import is_aborted, is_asked, is_killed
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import replace

_FOLDER = lazily(r"(?:^|/)attempt_(\d{1,6})/")
#: The host that pdsh puts before a line; the first of the ranks of each host in a list.
_HOST = lazily(r"([\w.-]{1,64}): ")
_HOST_RANKS = lazily(r"'([\w.-]{1,64})': \[(\d{1,7})")
#: How a Python program ends by an exception that nobody caught.
_ERROR = 1
#: No node has more devices than this, so that with fewer ranks a local rank is a rank.
_NODE_RANKS = 16


class GroupEnd(Struct, frozen=True):
    """The end of a worker group: whom the agent saw fail first, and with which exit code.

    `rank` is None where the job has several nodes and nothing tells the global rank. `attempt` counts the ends of its
    log from 0. `restarted` says that the group was started anew after it, `alike` that others ended in the same moment
    in the same way, and `is_root` that its block is the one of the root cause.
    """

    source: str
    line: int
    t_ns: int | None
    code: int
    local_rank: int
    pid: int
    quote: str
    name: str
    rank: int | None = None
    attempt: int = 0
    restarted: bool = False
    alike: bool = False
    is_root: bool = False

    def before(self, source: str, at: int | None, t_ns: int | None) -> bool:
        """Whether a place is known to follow this end."""
        if source == self.source:
            return at is not None and at > self.line
        folder = _FOLDER.search(source)
        if folder is not None and int(folder[1]) != self.attempt:
            return int(folder[1]) > self.attempt
        return t_ns is not None and self.t_ns is not None and t_ns > self.t_ns

    @property
    def explains(self) -> bool:
        """Whether complaints about peers after this end follow from it."""
        return not is_asked(self.code) and (self.restarted or not (self.is_plain or is_killed(self.code)))

    @property
    def is_plain(self) -> bool:
        """Whether it ended by its own error or abort, which complaints of its peers may have brought about."""
        return self.code == _ERROR or is_aborted(self.code)


@derived
def group_ends(run: Run) -> tuple[GroupEnd, ...]:
    """List the ends of worker groups in the order of their sources and lines."""
    code, said, again = pl.col("code"), telling("first_exit"), telling("restarted")
    rows = events_of(run, [FAILURE, *said, *again], ("source", "line", "seq"))
    if rows.is_empty():
        return ()
    rows = rows.filter(pl.col("line").is_not_null())
    blocks = [_end(row, ranked=True) for row in rows.filter(code == FAILURE).iter_rows(named=True)]
    firsts = [_end(row, ranked=False) for row in rows.filter(code.is_in(said)).iter_rows(named=True)]
    told, lines = ([end for end in ends if end is not None] for ends in (blocks, firsts))
    seen = {(end.source, end.pid) for end in lines}
    roots = [end for end in told if end.is_root and (end.source, end.pid) not in seen]
    restarts = rows.filter(code.is_in(again)).select("source", "line").rows()
    by_place = {(end.source, end.line): end for end in (*lines, *roots)}
    ends = [by_place[place] for place in sorted(by_place)]
    firsts_of = _agents(run)
    single = not firsts_of and highest_rank(run) < _NODE_RANKS
    return tuple(_told(_counted(end, firsts_of), ends, told, restarts, single=single) for end in ends)


def _agents(run: Run) -> dict[str, int]:
    """Give the global rank of the first worker of each agent, by its log, where it lists one all along."""
    rows = events_of(run, telling("ranks_of_agent"))
    found: dict[str, set[int]] = {}
    for source, attrs in only(rows, "source", "attrs").iter_rows():
        found.setdefault(source, set()).add(int(attributes(attrs)["first"]))
    return {source: ranks.pop() for source, ranks in found.items() if len(ranks) == 1}


def first_on_host(run: Run, source: str, quote: str) -> int | None:
    """Give the first rank of the host before a line, or in the name of its log, as a launcher lists them."""
    rows = run.scan("events").filter(pl.col("code").is_in(telling("ranks_of_hosts"))).select("attrs").collect()
    firsts = {host: int(n) for attrs in rows["attrs"] for host, n in _HOST_RANKS.findall(attributes(attrs)["hosts"])}
    before = _HOST.match(quote)
    if before is not None and before[1] in firsts:
        return firsts[before[1]]
    named = [first for host, first in firsts.items() if re.search(rf"(?<!\w){re.escape(host)}(?!\w)", source)]
    return named[0] if len(named) == 1 else None


def _counted(end: GroupEnd, firsts: Mapping[str, int]) -> GroupEnd:
    """The end of a worker with its global rank, where its agent lists the ranks of its node."""
    first = firsts.get(end.source)
    return end if first is None or end.rank is not None else replace(end, rank=first + end.local_rank)


@derived
def last_end(run: Run) -> GroupEnd | None:
    """Give the end after which no group trained any more: the earliest of them, None where order or end is unknown."""
    tried = attempts(run)
    by_source: dict[str, list[GroupEnd]] = {}
    for end in group_ends(run):
        by_source.setdefault(end.source, []).append(end)
    found = [end for ends in by_source.values() if (end := _deciding(run, tried, ends)) is not None]
    if len(found) > 1 and any(end.t_ns is None for end in found):
        return None
    return min(found, key=lambda end: end.t_ns or 0, default=None)


def follows(run: Run, source: str, at: int | None, t_ns: int | None) -> bool:
    """Whether a complaint about a peer follows from the end of an earlier worker group, by its place."""
    end = last_end(run)
    return end is not None and end.explains and end.before(source, at, t_ns)


def of_later_group(run: Run, source: str, at: int | None) -> bool:
    """Whether a line of the launcher is about a group that was started after the one that ended the run."""
    end = last_end(run)
    return end is not None and end.restarted and end.before(source, at, None)


def _deciding(run: Run, tried: Attempts, ends: Sequence[GroupEnd]) -> GroupEnd | None:
    """Give the first end after the last attempt that trained began, unless the log or a later attempt went on."""
    marks = marks_of(run)
    last = max((one.number for one in tried.every if one.records >= GOES_ON_RECORDS), default=0)
    if ends[0].source in tried.cuts:
        found = next((end for end in ends if tried.of(end.source, line=end.line) >= last), ends[-1])
    else:
        found = ends[min(last, len(ends) - 1)]
    trained = marks.steps_of(found.source).at_least(SURVIVED_STEPS, after=found.line)
    finished = any(mark.source == found.source and mark.at > found.line for mark in marks.successes)
    over = tried.is_over(found.source, line=found.line, t_ns=found.t_ns)
    return None if trained or finished or over else found


@derived
def highest_rank(run: Run) -> int:
    """Give the highest rank that a record or an event names, 0 where none does."""
    named = run.scan("events").select(pl.col("rank").max()).collect().item() if "events" in run.frames else None
    ranks = (named, *keys_of(run)["rank"].unique().to_list())
    return max((rank for rank in ranks if rank is not None), default=0)


def _end(row: Mapping[str, Any], *, ranked: bool) -> GroupEnd | None:
    """What one failure block (`ranked`) or line tells; None where it lacks exit code, local rank, process or rank."""
    line = by_id().get(row["code"])
    hit = line.compiled.search(row["text"] or "") if line is not None else None
    attrs = attributes(row["attrs"]) | (hit.groupdict("") if hit is not None else {})
    try:
        code, local_rank, pid = (int(attrs[key]) for key in ("exitcode", "local_rank", "pid"))
        rank = int(attrs["rank"]) if ranked else None
    except (KeyError, ValueError):
        return None
    place, said = (row["source"], row["line"], row["t_ns"]), (row["text"], row["code"])
    return GroupEnd(*place, code, local_rank, pid, *said, rank, is_root="root_cause" in attrs)


def _told(
    end: GroupEnd,
    ends: Sequence[GroupEnd],
    blocks: Sequence[GroupEnd],
    restarts: Sequence[tuple[str, int]],
    *,
    single: bool,
) -> GroupEnd:
    own = [other for other in ends if other.source == end.source]
    place = next(n for n, other in enumerate(own) if other.line == end.line)
    after = own[place + 1].line if place + 1 < len(own) else None
    same = [b for b in blocks if b.source == end.source]
    table = [b for b in same if b.line > end.line and (after is None or b.line < after)]
    rank = next((b.rank for b in same if b.pid == end.pid), end.rank)
    offsets = {b.rank - b.local_rank for b in same if b.rank is not None}
    if rank is None and len(offsets) == 1:
        rank = end.local_rank + offsets.pop()
    if rank is None and not same and single:
        rank = end.local_rank
    # the agent prints its table once, when no restart is left: its ranks are all of the last group
    earlier = end.pid not in {b.pid for b in same}
    again = after is not None or any(source == end.source and line > end.line for source, line in restarts)
    others = {b.pid for b in table if b.code == end.code} - {end.pid}
    alike = bool(others) and end.is_plain and not (earlier and again)
    return replace(end, rank=rank, attempt=place, restarted=earlier and again, alike=alike)
