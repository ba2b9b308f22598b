"""The unit of work of a fleet with faults that its runs ask for by their names; worker processes import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from forensics.errors import PlaceError
from forensics.fleet import judging
from forensics.fleet.judging import Record, Task


def judge(task: Task) -> Record:
    """Judge runs; die of `poison`, and of `weak` when another run is judged beside it."""
    for run in task.runs:
        if "poison" in run.name or ("weak" in run.name and len(task.runs) > 1):
            os.kill(os.getpid(), signal.SIGKILL)
    return judging.judge(task)


def notes(task: Task) -> Record:
    """Judge runs, and note each beside their folder; in the run of which the number is 0, wait while who asks lives."""
    asks = os.getppid()
    for run in task.runs:
        noted = Path(run.name).parents[1] / "judged"
        is_first = run.name not in noted.read_text().splitlines()
        with noted.open("a") as file:
            file.write(f"{run.name}\n")
        while is_first and run.name.endswith("-00"):
            time.sleep(0.01)
            if os.getppid() != asks:
                os._exit(0)
    return judging.judge(task)


def refuses(task: Task) -> Record:
    """Say what a bucket says that answers no more."""
    place = task.runs[0].name
    raise PlaceError(place, OSError("the service is silent"), help="look at it")
