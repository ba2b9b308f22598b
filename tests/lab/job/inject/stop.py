"""Signals and schedulers that end a job from outside."""

import os
import signal
import sys
import time

from facts import AT, KIND, RANK, WORLD, note

#: What comes by itself, and what SLURM adds to its line on a job that it ends.
_SIGNALS = {"stop-term": signal.SIGTERM, "stop-handler": signal.SIGTERM, "stop-int": signal.SIGINT}
_WHY = {"stop-limit": " DUE TO TIME LIMIT", "stop-preempt": " DUE TO PREEMPTION", "stop-cancel": ""}


def start():
    if KIND == "stop-handler":
        signal.signal(signal.SIGTERM, _told)
    if KIND == "stop-int":
        # a shell's background job ignores it, and its children with it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _told(number, _frame):
    print(f"received signal {number} (SIGTERM), leaving", flush=True)
    os._exit(128 + number)


def before(step):
    if step != AT or RANK:
        return
    note(onset=step)
    sys.stdout.flush()
    if KIND in _WHY:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        text = f"slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT {stamp}{_WHY[KIND]} ***"
        print(text, file=sys.stderr, flush=True)
    os.kill(os.getppid() if WORLD > 1 else os.getpid(), _SIGNALS.get(KIND, signal.SIGTERM))
    time.sleep(20)
