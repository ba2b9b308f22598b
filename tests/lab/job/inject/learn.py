"""A loss that is finite, and wrong."""

import copy

import torch
from facts import AT, HERE, JOB, KIND, NUMBERS, note

_LARGE_RATE = 30.0
#: Such a warm-up takes as many times the steps of the job.
_ENDLESS = 60
#: A data set of so many batches is learned by heart.
_FEW_BATCHES = 2
#: The noise that a rank's weights get at once.
_CORRUPT = 0.3
#: What a step leaves of the weights.
_DECAYED = 0.7
_first = []


def lr(step, rate):
    if KIND == "learn-lr0" and step >= AT:
        return 0.0
    if KIND == "learn-lr30":
        return _LARGE_RATE
    if KIND == "learn-warmup":
        return 6e-3 * step / (_ENDLESS * JOB["steps"])
    if KIND == "learn-creep" and step >= AT:
        return rate * NUMBERS["growth"] ** (step - AT)
    return rate * NUMBERS["factor"] if KIND == "learn-spike" and AT <= step < AT + 3 else rate


def batch(step, inputs, labels):
    if KIND == "learn-masked":
        return inputs, torch.full_like(labels, -100)
    if KIND == "learn-overfit":
        if len(_first) < _FEW_BATCHES:
            _first.append((inputs, labels))
        return _first[step % len(_first)]
    if KIND == "learn-shard" and step >= AT:
        note(onset=step)
        return inputs, torch.randint_like(labels, 64)
    return inputs, torch.randint_like(labels, 64) if KIND == "learn-shuffled" else labels


def parameters(net):
    """What the optimizer gets: by mistake, a copy's."""
    return copy.deepcopy(net).parameters() if KIND == "learn-frozen" else net.parameters()


def gradients(step, net):
    """One rank's weights part from the others'; every update after it is the same on all. Or all decay, or begin anew."""
    if KIND == "learn-decay" and step >= AT:
        note(onset=step)
        for parameter in net.parameters():
            parameter.data.mul_(_DECAYED)
    if KIND == "learn-anew" and step == AT:
        note(onset=step + 1)
        for module in net.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
    if KIND == "learn-ranks" and HERE and step == AT:
        note(onset=step)
        for parameter in net.parameters():
            parameter.data.add_(_CORRUPT * torch.randn_like(parameter))
