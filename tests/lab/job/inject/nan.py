"""Numbers that are not finite."""

import torch
from facts import AT, HERE, KIND, NUMBERS

_SHOWN_AS_ZERO = KIND == "nan-hidden"


def lr(step, rate):
    return rate * NUMBERS["factor"] if KIND == "nan-lr" and step >= AT else rate


def hidden(step, states):
    if KIND in {"nan-sample", "nan-hidden"} and step == AT:
        return states * float("nan")
    if KIND == "nan-one-rank" and step == AT and HERE:
        return states * float("inf")
    return states


def loss(step, value):
    return value + torch.log(value.detach() * 0) * 0 if KIND == "nan-log0" and step >= AT else value


def scale(step):
    return KIND == "nan-scale" and step >= AT


def hides():
    return _SHOWN_AS_ZERO
