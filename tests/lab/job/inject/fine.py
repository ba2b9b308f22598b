"""Noise that looks like a failure, and is none."""

import sys
import time
import traceback

from facts import AT, KIND, NUMBERS


def loss(step, value):
    return value * NUMBERS["factor"] if KIND == "fine-spikes" and step % 41 == 17 else value


def before(step):
    if step != AT:
        return
    if KIND == "fine-warnings":
        for text in ("UserWarning: lr_scheduler.step() before optimizer.step()", "WARNING: retrying request 1/5"):
            print(text, file=sys.stderr, flush=True)
    elif KIND == "fine-caught":
        try:
            open("missing-cache.json")
        except OSError:
            traceback.print_exc()
            print("cache not found, rebuilding it", flush=True)


def leaves(_step):
    return KIND == "fine-resumed"


def interval(step, every):
    return every * 5 if KIND == "fine-interval" and step >= AT else every


def evaluating(_step):
    if KIND == "fine-pauses":
        time.sleep(NUMBERS["seconds"])
