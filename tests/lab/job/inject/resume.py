"""What a second process forgets, and a checkpoint that nobody gets past."""

from facts import AT, KIND, START, STARTED_AT, note

#: Parts of a checkpoint that a fault does not load.
_LOST = {
    "resume-optimizer": {"optimizer"},
    "resume-weights": {"net", "optimizer"},
    "resume-data": {"data"},
    "resume-counter": {"step"},
}
#: At so many times the usual rate, fresh moments throw the weights off.
_HIGH = 40
#: The second process is told another learning rate.
_OTHER_RATE = 6


def leaves(_step):
    return KIND != "resume-loop"


def before(step):
    if START and step == STARTED_AT + 1 and KIND != "resume-loop":
        note(onset=step)
    if KIND == "resume-loop" and step == AT:
        note(onset=step)
        raise KeyError("rope_scaling")


def lr(_step, rate):
    if KIND == "resume-rate" and STARTED_AT:
        return rate * _OTHER_RATE
    return rate * _HIGH if KIND == "resume-optimizer" else rate


def schedule_step(step):
    return step - STARTED_AT if KIND == "resume-schedule" else step


def position(step):
    return step - STARTED_AT if KIND == "resume-data" else step


def restore(part):
    return part not in _LOST.get(KIND, ())
