"""Steps that take longer, and time that is lost between them."""

import time

from facts import AT, HERE, JOB, KIND, NUMBERS, note


def slower(step):
    if step == AT:
        note(onset=step)
    if step < AT:
        return 1.0
    past = (step - AT) / max(JOB["steps"] - AT, 1)
    if KIND == "slow-loader" or (KIND in {"slow-straggler", "slow-straggler-told"} and HERE):
        return NUMBERS["times"]
    if KIND == "slow-ramp":
        return 1 + past * (NUMBERS["times"] - 1)
    if KIND == "slow-transient":
        return NUMBERS["times"] if step < AT + NUMBERS["share"] * JOB["steps"] else 1.0
    if KIND == "slow-twice":
        return NUMBERS["times"] ** (1 if past < 0.5 else 2)
    return 1.0


def pause_s(step):
    return (
        NUMBERS["seconds"] if KIND == "slow-pauses" and step >= AT and (step - AT) % int(NUMBERS["every"]) == 0 else 0
    )


def busy():
    """Whether every rank logs how long its own work took, before it waits for the others."""
    return KIND == "slow-straggler-told"


def evaluating(step):
    if KIND == "slow-evals":
        time.sleep(NUMBERS["seconds"] * step / JOB["steps"])


def saving(step):
    if KIND == "slow-saves":
        time.sleep(NUMBERS["seconds"])
