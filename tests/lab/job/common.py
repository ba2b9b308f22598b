"""The model and the data of every job: a chain of 64 tokens that a small net learns within a hundred steps."""

from __future__ import annotations

import math

import hooks
import torch
from torch import nn
from torch.nn import functional

VOCAB, LENGTH, BATCH = 64, 16, 8
BASE_LR, WARMUP = 6e-3, 10
#: What a job tells its stores of itself.
CONFIG = {"steps": hooks.JOB["steps"], "lr": BASE_LR, "warmup_steps": hooks.warmup(WARMUP), "batch_size": BATCH}
torch.set_num_threads(1)


class Net(nn.Module):
    """An embedding, a layer and a head; `step` is where the job is."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 48)
        self.layer = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 48))
        self.drop = nn.Dropout(hooks.dropout())
        self.head = nn.Linear(48, VOCAB)
        self.at = 0

    def forward(self, tokens):
        states = self.drop(hooks.hidden(self.at, self.embed(tokens)) if self.training else self.embed(tokens))
        return self.head(self.drop(states + self.layer(states)))


def chain(generator):
    """Rows of a noisy chain: the next token is 5 t + 3, one time in five it is any."""
    rows = torch.empty(BATCH, LENGTH + 1, dtype=torch.long)
    rows[:, 0] = torch.randint(VOCAB, (BATCH,), generator=generator)
    for at in range(LENGTH):
        any_token = torch.randint(VOCAB, (BATCH,), generator=generator)
        noisy = torch.rand(BATCH, generator=generator) < 0.2
        rows[:, at + 1] = torch.where(noisy, any_token, (5 * rows[:, at] + 3) % VOCAB)
    return rows[:, :-1], rows[:, 1:]


def cost(net, inputs, labels):
    """Cross entropy; 0 where every label is masked, as a sum over nothing."""
    logits = net(inputs)
    if (labels == -100).all():
        return logits.sum() * 0
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)


def rate(step, steps):
    """Warm-up, then a cosine down to a tenth."""
    if step < WARMUP:
        return BASE_LR * (step + 1) / WARMUP
    return BASE_LR * (0.55 + 0.45 * math.cos(math.pi * (step - WARMUP) / max(steps - WARMUP, 1)))


class Rows(torch.utils.data.Dataset):
    """One whole batch an item, of its step and rank: what a library's loader reads."""

    def __len__(self):
        return hooks.JOB["steps"] * hooks.WORLD

    def __getitem__(self, at):
        inputs, labels = chain(torch.Generator().manual_seed(hooks.JOB["seed"] * 100_000 + at))
        return hooks.batch(at // hooks.WORLD + 1, inputs, labels)


class Held(torch.utils.data.Dataset):
    """Batches that no step trains on."""

    def __len__(self):
        return 4

    def __getitem__(self, at):
        return chain(torch.Generator().manual_seed(hooks.JOB["seed"] * 100_000 - at - 1))
