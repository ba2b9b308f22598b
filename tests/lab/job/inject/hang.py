"""Ranks that do not come to a collective."""

import datetime
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from facts import AT, HERE, KIND, note

_LONG_S = 120
_groups, _lock = [], threading.Lock()


def joining():
    if KIND == "hang-start" and HERE:
        time.sleep(_LONG_S)


def start():
    if KIND == "hang-groups":
        patience = datetime.timedelta(seconds=8)
        _groups.extend(dist.new_group(timeout=patience) for _ in range(2))


def _alone(step):
    """Rank 0 works while the others wait for it."""
    if step >= AT and not dist.get_rank():
        note(onset=step)
        time.sleep(_LONG_S)


def saving(step):
    if KIND == "hang-save":
        _alone(step)


def evaluating(step):
    if KIND == "hang-eval":
        _alone(step)


def skips(step):
    """Leaves the gradients of one step out, or exchanges something else in their place."""
    if step != AT or not HERE:
        return False
    if KIND in {"hang-skip", "hang-broadcast", "hang-barrier", "hang-shape"}:
        note(onset=step)
    if KIND == "hang-broadcast":
        dist.broadcast(torch.ones(3072), dist.get_rank())
    elif KIND == "hang-barrier":
        dist.barrier()
    elif KIND == "hang-shape":
        dist.all_reduce(torch.ones(17))
    return KIND == "hang-skip"


def before(step):
    if step != AT:
        return
    if KIND == "hang-groups":
        note(onset=step)
        for group in reversed(_groups) if HERE else _groups:
            dist.all_reduce(torch.ones(64), group=group)
    if not HERE or KIND not in _LEAVE:
        return
    note(onset=step)
    sys.stdout.flush()
    _LEAVE[KIND]()


_LEAVE = {
    "hang-lock": lambda: (_lock.acquire(), _lock.acquire()),
    "hang-loader": lambda: time.sleep(_LONG_S),
    "hang-exit0": lambda: os._exit(0),
    "hang-exit1": lambda: os._exit(1),
    "hang-kill9": lambda: os.kill(os.getpid(), signal.SIGKILL),
    # its data are used up: it goes to the last barrier while the others train on
    "hang-uneven": lambda: (print("end of data, waiting for the other ranks", flush=True), dist.barrier(), os._exit(0)),
}


def leaving():
    if KIND == "hang-end" and HERE:
        time.sleep(_LONG_S)
