"""Ranks that do not come to a collective."""

import os
import signal
import sys
import time

from facts import AT, HERE, KIND, note


def skips(step):
    if KIND == "hang-skip" and step == AT and HERE:
        note(onset=step)
        return True
    return False


def before(step):
    if step != AT or not HERE or KIND == "hang-skip":
        return
    note(onset=step)
    sys.stdout.flush()
    if KIND == "hang-loader":
        time.sleep(120)
    elif KIND == "hang-exit0":
        os._exit(0)
    elif KIND == "hang-kill9":
        os.kill(os.getpid(), signal.SIGKILL)
