"""Steps that take longer, and time that is lost between them."""

import time

from facts import AT, HERE, JOB, KIND, NUMBERS, note


def slower(step):
    if step == AT:
        note(onset=step)
    if step < AT:
        return 1.0
    if KIND == "slow-loader" or (KIND == "slow-straggler" and HERE):
        return NUMBERS["times"]
    if KIND == "slow-ramp":
        return 1 + (step - AT) / max(JOB["steps"] - AT, 1) * (NUMBERS["times"] - 1)
    return 1.0


def pause_s(step):
    return (
        NUMBERS["seconds"] if KIND == "slow-pauses" and step >= AT and (step - AT) % int(NUMBERS["every"]) == 0 else 0
    )


def saving(step):
    if KIND == "slow-saves":
        time.sleep(NUMBERS["seconds"])
