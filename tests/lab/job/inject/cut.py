"""Ends that nobody prints, and faults whose log is cut afterwards."""

import os
import signal
import sys

from facts import AT, KIND, note

_SIGNALS = {"cut-kill": signal.SIGKILL, "cut-term": signal.SIGTERM, "cut-segv": signal.SIGSEGV}


def before(step):
    if step != AT:
        return
    sys.stdout.flush()
    if KIND in _SIGNALS:
        os.kill(os.getpid(), _SIGNALS[KIND])
    if KIND == "cut-crash":
        note(onset=step)
        raise KeyError("rope_scaling")


def hidden(step, states):
    return states * float("nan") if KIND == "cut-nan" and step == AT else states
