"""How each process ended, as its launcher tells: exit codes by rank, and whom the launcher had to kill by force.

An exit by SIGTERM (-15) is the launcher's own tear-down. One by SIGKILL is that too where the launcher says that the
process did not react to SIGTERM: it was stuck. A rank that the list of failures leaves out ended with code 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from forensics.signals.hang_attempts import of_later_group
from forensics.store.run import Run

#: The cause of a process that ended by an exit code and said nothing.
NONZERO = "exit_nonzero"
_EXIT = re.compile(r"exitcode\s*: (?P<code>-?\d{1,4}) \(pid: (?P<pid>\d+)\)")
_FORCED = re.compile(r"Unable to shutdown process (?P<pid>\d+) via")
_RANK = re.compile(r"^\W*rank\s*: (?P<rank>\d{1,7}) \(local_rank: \d+\)")
#: Lines between the rank and the exit code of one failure block.
_BLOCK_LINES = 4


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one rank: its exit code (negative: a signal), and whether the launcher had to use force."""

    rank: int
    code: int
    pid: int
    forced: bool
    source: str
    line: int | None
    quote: str


@dataclass(frozen=True, slots=True)
class Exits:
    """All ends that were told; `sources` are the logs that hold a list of failures."""

    by_rank: Mapping[int, Exit]
    sources: frozenset[str] = frozenset()


def exits(run: Run) -> Exits:
    """Read the failure blocks of the launchers."""
    return run.derived(_exits)


def _exits(run: Run) -> Exits:
    wanted = pl.col("text").str.contains(r"exitcode\s*: -?\d|Unable to shutdown process|\(local_rank: \d")
    rows = run.scan("events").filter(wanted).sort("source", "line").select("source", "line", "text").unique(
        maintain_order=True
    ).collect()  # fmt: skip
    forced = {int(hit["pid"]) for (text,) in rows.select("text").iter_rows() if (hit := _FORCED.search(text))}
    found: dict[int, Exit] = {}
    block: tuple[str, int, int] | None = None
    for source, line, text in rows.iter_rows():
        if of_later_group(run, source, line):
            continue
        if (named := _RANK.match(text)) is not None:
            block = (source, line or 0, int(named["rank"]))
        hit = _EXIT.search(text)
        if hit is None or block is None or block[0] != source or not 0 <= (line or 0) - block[1] <= _BLOCK_LINES:
            continue
        pid = int(hit["pid"])
        found.setdefault(block[2], Exit(block[2], int(hit["code"]), pid, pid in forced, source, line, text))
    return Exits(found, frozenset(e.source for e in found.values()))
