"""What a second process forgets, and a checkpoint that nobody gets past."""

from facts import AT, KIND, STARTED_AT, START, note


def leaves(_step):
    return KIND != "resume-loop"


def before(step):
    if START and step == STARTED_AT + 1 and KIND != "resume-loop":
        note(onset=step)
    if KIND == "resume-loop" and step == AT:
        note(onset=step)
        raise KeyError("rope_scaling")


def schedule_step(step):
    return step - STARTED_AT if KIND == "resume-schedule" else step


def restore(part):
    return not (KIND == "resume-weights" and part in {"net", "optimizer"})
