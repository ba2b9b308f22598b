"""A share of a run's files for each of several machines that know nothing of each other.

A file belongs to a share by the hash of its path, so whoever reads share 3 of 16 reads the same files, today and after
the run has grown. Each share publishes what it read beside the other shares; order and repetition change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from forensics.errors import UsageError

AUTO = "auto"
_HELP = "as --shard 3/16 (0 to 15), or --shard auto in a job array of Slurm, or --shard auto/16 in an indexed Job"
#: Where a scheduler says which of how many tasks this is: the number, the first one, the step between two, the count.
_TASKS = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT"),
    ("JOB_COMPLETION_INDEX", "", "", ""),
    ("SLURM_PROCID", "", "", "SLURM_NTASKS"),
)


class Shard(Struct, frozen=True):
    """Share `index`, from 0 on, of `count`."""

    index: int
    count: int

    def has(self, path: str) -> bool:
        """Whether the file with this path in the run belongs to the share."""
        number = int.from_bytes(hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()[:8])
        return number % self.count == self.index


def parsed(text: str, env: Mapping[str, str]) -> Shard:
    """Read `3/16`, `auto` or `auto/16`; `auto` asks the environment of a Slurm array, an indexed Job or a Slurm step.

    Raises `UsageError` when it is none of them, or the environment does not say.
    """
    which, _, count = text.partition("/")
    if which == AUTO:
        number, of = _told(env)
        found = Shard(number, _whole("--shard", count) if count else of)
        if not found.count:
            message = "--shard auto: the environment says which task this is, and not of how many"
            raise UsageError(message, help="write the number of tasks behind it: --shard auto/16")
    else:
        found = Shard(_whole("--shard", which), _whole("--shard", count))
    if found.index >= found.count:
        raise UsageError(f"--shard: task {found.index} of {found.count} is none of 0 to {found.count - 1}", help=_HELP)
    return found


def _told(env: Mapping[str, str]) -> tuple[int, int]:
    """Which task this is, from 0 on, and of how many; 0 where that is not said."""
    for number, first, step, count in _TASKS:
        if env.get(number):
            begin, by = _whole(first, env.get(first) or "0"), _whole(step, env.get(step) or "1")
            return (_whole(number, env[number]) - begin) // max(by, 1), _whole(count, env.get(count) or "0")
    raise UsageError("--shard auto: this is no task of a job array, of an indexed Job or of srun", help=_HELP)


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"{name}: {text!r} is not a number of tasks", help=_HELP)
    return int(text)
