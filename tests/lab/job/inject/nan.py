"""Numbers that are not finite."""

import math

import torch
from facts import AT, HERE, KIND, NUMBERS, note

_SHOWN_AS_ZERO = KIND == "nan-hidden"
_SKIPPED_UPDATES = 3
_INF, _NAN = float("inf"), float("nan")


def lr(step, rate):
    return rate * NUMBERS["factor"] if KIND == "nan-lr" and step >= AT else rate


def hidden(step, states):
    if KIND in {"nan-sample", "nan-hidden", "nan-stop"} and step == AT:
        return states * _NAN
    if KIND == "nan-start":
        return states * _NAN
    if KIND == "nan-one-rank" and step == AT and HERE:
        return states * _INF
    if KIND == "nan-overflow" and step >= AT:
        # activations that grow past the largest number of fp16
        return (states * NUMBERS["growth"] ** (step - AT)).half().float()
    return states


def loss(step, value):
    return value + torch.log(value.detach() * 0) * 0 if KIND == "nan-log0" and step >= AT else value


def gradients(step, net):
    if (KIND == "nan-grad" and step >= AT) or (KIND == "nan-recovers" and AT <= step < AT + _SKIPPED_UPDATES):
        net.head.weight.grad[0, 0] = _NAN
    if KIND == "nan-stop" and not math.isfinite(float(net.head.weight.grad.sum())):
        raise SystemExit("Loss is nan, stopping training")


def leaves(_step):
    return KIND == "nan-resumed"


def resuming(path):
    """The checkpoint that the second process goes on from holds a NaN."""
    if KIND == "nan-resumed":
        state = torch.load(f"{path}/model.pt")
        state["net"]["layer.0.weight"][0, 0] = _NAN
        torch.save(state, f"{path}/model.pt")


def guards():
    return KIND in {"nan-grad", "nan-recovers"}


def evaluated(step, value):
    if KIND == "nan-eval" and step >= AT:
        note(onset=step)
        return _NAN
    return value


def scale(step):
    return KIND == "nan-scale" and step >= AT


def hides():
    return _SHOWN_AS_ZERO
