"""Where something can go wrong: every loop calls these at the same places, and knows of no fault.

Each hook is answered by the module of `inject` that the fault belongs to, or does nothing.
"""

from __future__ import annotations

import importlib
import math
import time

from facts import AT, JOB, KIND, RANK, STARTED_AT, WORLD, note  # noqa: F401 - loops take them from here

_inject = importlib.import_module(f"inject.{KIND.split('-')[0]}")
#: What one step takes beside its arithmetic, so that a slowdown is one against something.
PACE_S = 0.03
_seen = set()


def _asked(name, default, *given):
    return getattr(_inject, name, default)(*given)


def look(step, *numbers):
    """Note the first step with a loss or a gradient that is not finite."""
    if "bad" not in _seen and not all(map(math.isfinite, numbers)):
        _seen.add("bad")
        note(onset=step)


def start():
    """Before the first step."""
    _asked("start", lambda: None)


def joining():
    """Before the ranks meet."""
    _asked("joining", lambda: None)


def leaving():
    """After the last step, before the ranks part."""
    _asked("leaving", lambda: None)


def resuming(path):
    """Before a checkpoint is loaded."""
    _asked("resuming", lambda _path: None, path)


def parameters(net):
    """What the optimizer updates."""
    return _asked("parameters", lambda net: net.parameters(), net)


def before(step):
    """Between two steps: waits, dies, leaves."""
    time.sleep(PACE_S * _asked("slower", lambda _step: 1.0, step) + _asked("pause_s", lambda _step: 0.0, step))
    _asked("before", lambda _step: None, step)


def lr(step, rate):
    """The learning rate of a step."""
    return _asked("lr", lambda _step, rate: rate, step, rate)


def schedule_step(step):
    """The step that the schedule believes in."""
    return _asked("schedule_step", lambda step: step, step)


def batch(step, inputs, labels):
    """Tokens in and out of one step."""
    return _asked("batch", lambda _step, *both: both, step, inputs, labels)


def hidden(step, states):
    """What the first layer gives."""
    return _asked("hidden", lambda _step, states: states, step, states)


def loss(step, value):
    """The loss that is differentiated and logged."""
    return _asked("loss", lambda _step, value: value, step, value)


def gradients(step, net):
    """Between the backward pass and the update."""
    _asked("gradients", lambda _step, _net: None, step, net)


def guards():
    """Whether the loop leaves out an update whose gradient norm is not finite."""
    return _asked("guards", lambda: False)


def memory(step):
    """GPU memory in GiB that the loop logs, or None."""
    return _asked("memory", lambda _step: None, step)


def busy():
    """Whether a record says how long the rank's own work took."""
    return _asked("busy", lambda: False)


def position(step):
    """How many batches of the data were read up to a step, as the loop counts them."""
    return _asked("position", lambda step: step, step)


def evaluated(step, value):
    """The loss of an evaluation."""
    return _asked("evaluated", lambda _step, value: value, step, value)


def stops(step):
    """Whether the loop stops early, as planned."""
    return _asked("stops", lambda _step: False, step)


def scale(step):
    """Whether the fp16 update of this step overflows."""
    return _asked("scale", lambda _step: False, step)


def restore(part):
    """Whether a resumed process loads this part of its checkpoint: net, optimizer, data, step."""
    return _asked("restore", lambda _part: True, part)


def leaves(step):
    """Whether an earlier process of several ends here by itself, at the checkpoint that the next goes on from."""
    resumes_at = AT // JOB["save_every"] * JOB["save_every"]
    return _asked("leaves", lambda _step: False, step) and not STARTED_AT and step == resumes_at > 0


def skips(step):
    """Whether this rank leaves the collective of this step out."""
    return _asked("skips", lambda _step: False, step)


def hides():
    """Whether the logger shows 0 in place of a loss that is not finite."""
    return _asked("hides", lambda: False)


def interval(step, every):
    """The log interval."""
    return _asked("interval", lambda _step, every: every, step, every)


def saving(step):
    """While a checkpoint is written."""
    _asked("saving", lambda _step: None, step)


def evaluating(step):
    """While the loop evaluates."""
    _asked("evaluating", lambda _step: None, step)


def evaluation(step, how):
    """How the evaluation of a checkpoint is made."""
    return _asked("evaluation", lambda _step, how: how, step, how)


def wrong_evaluation():
    """Whether an evaluation that is made otherwise is made wrongly."""
    return _asked("wrong_evaluation", lambda: False)


def warmup(steps):
    """For how many steps the job says that its learning rate warms up."""
    return _asked("warmup", lambda told: told, steps)


def dropout():
    """The share of states that training drops."""
    return _asked("dropout", lambda: 0.0)
