"""Signals and schedulers that end a job from outside."""

import os
import signal
import sys
import time

from facts import AT, KIND, RANK, WORLD, note


def before(step):
    if step != AT or RANK:
        return
    note(onset=step)
    sys.stdout.flush()
    if KIND == "stop-int":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    if KIND == "stop-limit":
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        text = f"slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT {stamp} DUE TO TIME LIMIT ***"
        print(text, file=sys.stderr, flush=True)
    if KIND in {"stop-term", "stop-limit"}:
        os.kill(os.getppid() if WORLD > 1 else os.getpid(), signal.SIGTERM)
        time.sleep(20)
