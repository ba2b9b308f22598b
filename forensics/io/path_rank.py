"""The rank and the attempt that a launcher wrote into a path: `attempt_1/3/stdout.log`, `rank_3/`, `rank0.json`."""

from __future__ import annotations

import re
from itertools import pairwise

_RANK = re.compile(r"(?:^|[^a-z0-9])(?:global|local|world)?[_-]?rank[_=-]?(\d{1,6})(?![0-9])", re.IGNORECASE)
_BEFORE = re.compile(r"([a-z0-9]+)[_.=-]*$", re.IGNORECASE)
_ATTEMPT = re.compile(r"(?:attempt|restart)[_-]?(\d{1,6})", re.IGNORECASE)
_LOCAL = re.compile(r"\d{1,6}")
#: `lora_rank16` is the rank of a matrix and `node_rank_1` counts machines.
_OTHER_RANKS = frozenset(
    {"lora", "dora", "galore", "low", "full", "svd", "peft", "node", "machine", "matrix", "adapter"}
)


def _rank_in(part: str) -> int | None:
    for match in _RANK.finditer(part):
        before = _BEFORE.search(part[: match.start() + 1])
        if before is None or before[1].lower() not in _OTHER_RANKS:
            return int(match[1])
    return None


def attempt_of(path: str) -> int | None:
    """The launcher's attempt that a folder of the path names, 0-based as printed, or None."""
    for part in path.split("/")[:-1]:
        if match := _ATTEMPT.fullmatch(part):
            return int(match[1])
    return None


def rank_of(path: str) -> int | None:
    """The rank that the path names, the deepest part first, or None; below `attempt_N` a bare number is a rank."""
    parts = path.split("/")
    for part in reversed(parts):
        if (rank := _rank_in(part)) is not None:
            return rank
    for above, part in pairwise(parts[:-1]):
        if _ATTEMPT.fullmatch(above) and _LOCAL.fullmatch(part):
            return int(part)
    return None
