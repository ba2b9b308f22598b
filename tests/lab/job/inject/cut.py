"""A kill that nobody prints."""

import os
import signal
import sys

from facts import AT, KIND


def before(step):
    if KIND == "cut-kill" and step == AT:
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
