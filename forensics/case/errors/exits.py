"""How each process ended, as its launcher tells: exit codes by rank, and whom the launcher had to kill by force.

torchrun tells whose failure it saw first and lists one of each worker, srun prints a line for each task, mpirun one for
a rank that a signal ended, Composer and Lightning one with the exit code of a rank.

An exit by SIGTERM (-15) is the launcher's own tear-down. One by SIGKILL is that too where the launcher says that the
process did not react to SIGTERM: it was stuck. What a signal ended after the scheduler said that a node is lost was
ended for that; what srun kills in a step that it ended for a task's failure is as if it were asked. A rank that a list
of failures leaves out ended with code 0, or was alive when the launcher ended it, which torchrun says of each. The ends
of an attempt that a later one went on from are not those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import events_of
from forensics.case.errors.kinds import attributes
from forensics.case.errors.launchers import last_end, of_later_group
from forensics.case.processes.attempts import attempts
from forensics.case.rank_spans import listed
from forensics.dialects.events.elastic import FAILURE
from forensics.knowledge.errors import telling
from forensics.knowledge.signals import code_of, signal_of
from forensics.store.run import Run, derived
from forensics.values import replace

#: The cause of a process that ended by an exit code and said nothing.
NONZERO = "exit_nonzero"
#: By SIGKILL and by SIGTERM.
_KILLED, _ASKED = -9, -15
#: No node has more workers.
_NODE_RANKS = 128


class Exit(Struct, frozen=True):
    """The end of one rank: its exit code (negative: a signal), and whether the launcher had to use force.

    `local_rank` is known of torchrun's workers. `listed`: it is in a list of all failures, and not alone in the line
    that tells who failed first.
    """

    rank: int
    code: int
    pid: int | None
    forced: bool
    source: str
    line: int | None
    quote: str
    local_rank: int | None = None
    listed: bool = True


class Exits(Struct, frozen=True):
    """All ends that were told; `ended_alive`: the launcher ended workers, those of `ended_pids` among them."""

    by_rank: Mapping[int, Exit]
    ended_alive: bool = False
    ended_pids: frozenset[int] = frozenset()

    @property
    def listed(self) -> Mapping[int, Exit]:
        """The ends that lists of failures hold."""
        return {rank: end for rank, end in self.by_rank.items() if end.listed}

    @property
    def by_itself(self) -> frozenset[int]:
        """Ranks that ended by a code or a signal of their own, and were not ended by the launcher."""
        ways = {rank: signal_of(end.code) for rank, end in self.by_rank.items() if end.pid not in self.ended_pids}
        return frozenset(rank for rank, signal in ways.items() if signal is None or signal.way != "asked")

    @property
    def left_out(self) -> frozenset[int]:
        """Ranks below a listed one on the same node, which a list of that node's failures leaves out."""
        highest: dict[int, int] = {}
        for end in self.listed.values():
            if end.local_rank is not None and end.local_rank <= end.rank:
                first = end.rank - end.local_rank
                highest[first] = max(end.rank, highest.get(first, 0))
        below = {rank for first, last in highest.items() for rank in range(first, min(last, first + _NODE_RANKS))}
        return frozenset(below - self.by_rank.keys())


def cause_of(code: int) -> str:
    """Give the cause of a process that said nothing and ended with a code."""
    if code == 0:
        return "early_exit"
    signal = signal_of(code)
    return NONZERO if signal is None or signal.way == "asked" else signal.cause


@derived
def exits(run: Run) -> Exits:
    """Read what the launchers report of the ends of ranks."""
    forcing = telling("forced")
    ends = [FAILURE, *telling("exit_of_tasks"), *telling("exit_by_signal"), *telling("exit_of_rank")]
    others = [*forcing, *telling("lost_node"), *telling("ended_alive"), *telling("ended_step")]
    rows = events_of(run, [*ends, *others], ("source", "line", "seq"))
    lost, over = (_first_lines(rows, told) for told in ("lost_node", "ended_step"))
    told = [(row, attributes(row["attrs"])) for row in rows.iter_rows(named=True)]
    forced = {attrs.get("pid") for row, attrs in told if row["code"] in forcing}
    tables = any(row["code"] == FAILURE for row, _ in told)
    tried = attempts(run)
    found: dict[int, Exit] = {}
    ended_alive, ended_pids = False, set[int]()
    for row, attrs in told:
        # under torchrun a task of srun is an agent and no rank
        if (tables and row["code"] in telling("exit_of_tasks")) or of_later_group(run, row["source"], row["line"]):
            continue
        if tried.is_over(row["source"], line=row["line"], t_ns=row["t_ns"]):
            continue
        if row["code"] in telling("ended_alive"):
            ended_alive = True
            ended_pids |= {int(pid) for pid in (attrs.get("pid", ""),) if pid.isdigit()}
        since = lost.get(row["source"])
        after_loss = since is not None and row["line"] is not None and row["line"] > since
        for end in _ends(row, attrs):
            if after_loss and signal_of(end.code) is not None:
                continue
            swept = end.code == _KILLED and _is_swept(end, over.get(row["source"]), found)
            code = _ASKED if swept else end.code
            found.setdefault(end.rank, replace(end, code=code, forced=attrs.get("pid") in forced))
    first = last_end(run)
    if first is not None and first.rank is not None and first.rank not in found:
        found[first.rank] = Exit(
            first.rank, first.code, first.pid, forced=str(first.pid) in forced, source=first.source, line=first.line,
            quote=first.quote, local_rank=first.local_rank, listed=False,
        )  # fmt: skip
    return Exits(found, ended_alive, frozenset(ended_pids))


def _first_lines(rows: pl.DataFrame, fact: str) -> dict[str, int]:
    """Give the first line of each source that tells a fact."""
    if rows.is_empty():
        return {}
    return dict(rows.filter(pl.col("code").is_in(telling(fact))).group_by("source").agg(pl.col("line").min()).rows())


def _is_swept(end: Exit, over: int | None, before: Mapping[int, Exit]) -> bool:
    """Whether a task was killed because its step was ended (in line `over`) for one that ended by itself before."""
    if over is None or end.line is None or end.line < over:
        return False
    return any(
        one.source == end.source and one.line is not None and one.line < over and one.code not in (_KILLED, _ASKED)
        for one in before.values()
    )


def _ends(row: Mapping[str, Any], attrs: Mapping[str, str]) -> Iterator[Exit]:
    """Give the ends that one line or block tells; none where it names no code or no rank."""
    if row["code"] in telling("exit_of_tasks"):
        code = code_of(attrs.get("what", "")) if "rc" not in attrs else int(attrs["rc"])
        ranks = listed(attrs.get("tasks", ""))
    elif row["code"] in telling("exit_by_signal"):
        code, ranks = -int(attrs.get("signal", "0")), listed(attrs.get("rank", ""))
    else:
        code = int(attrs["exitcode"]) if "exitcode" in attrs else None
        ranks = listed(attrs.get("rank", ""))
    if not code:
        return
    pid, local_rank = (int(attrs[key]) if attrs.get(key, "").isdigit() else None for key in ("pid", "local_rank"))
    said: dict[str, Any] = {"source": row["source"], "line": row["line"], "quote": row["text"] or ""}
    yield from (Exit(rank, code, pid, forced=False, local_rank=local_rank, **said) for rank in ranks)
