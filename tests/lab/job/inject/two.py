"""The second of two runs that lie side by side goes wrong."""

from facts import AT, JOB, KIND, START, note

JOB["seed"] += START


def before(step):
    if START and KIND == "two-crash" and step == AT:
        note(onset=step)
        raise KeyError("rope_scaling")


def hidden(step, states):
    return states * float("nan") if START and KIND == "two-nan" and step == AT else states
