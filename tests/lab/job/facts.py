"""What this process knows of its job, and how it tells the truth file, outside of the run, what happened."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

JOB = json.loads(Path(os.environ["LAB_JOB"]).read_text())
NOTES = Path(os.environ["LAB_NOTES"])
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
KIND, AT, NUMBERS = JOB["fault"], JOB["at"], JOB["numbers"]
#: Whether this is the rank that the fault is about.
HERE = JOB["rank"] == RANK
#: The step of the checkpoint that this process goes on from; the number of this process in its place.
STARTED_AT, START = int(os.environ.get("LAB_STARTED_AT", "0")), int(os.environ.get("LAB_START", "0"))
#: How many processes follow each other in this place.
STARTS = int(os.environ.get("LAB_STARTS", "1"))
# a shell that runs the lab in its background leaves its children deaf to it
signal.signal(signal.SIGINT, signal.default_int_handler)


def note(**facts):
    """Tell the truth file what happened: `onset`, `shown` with what was logged, `saved`, `evaluated`, `ended`.

    With each comes who says it, in which process of the place, how many bytes its log holds so far, when it is said and
    for how long the process had waited for a CPU by then (proc(5), schedstat), both in seconds.
    """
    told = facts | {"by": RANK, "process": START, "log_bytes": os.fstat(1).st_size}
    told |= {"at_s": time.monotonic(), "waited_s": _waited_s()}
    with NOTES.with_suffix(f".{RANK}").open("a") as out:
        out.write(json.dumps(told) + "\n")


def _waited_s():
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0
