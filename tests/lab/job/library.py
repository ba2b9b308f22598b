"""What the scripts of libraries share: the net as a model that gives its loss, the schedule, and what is noted."""

from __future__ import annotations

import datetime
import os
import random
import time

import common
import hooks
import torch
import torch.distributed as dist
from stores import Stores

JOB = hooks.JOB
#: Choices that a job's author made, the same for the same job.
CHOICE = random.Random(f"script-{JOB['seed']}-{JOB['number']}")


#: A rank may take long to start what it logs to; a collective of the loop may not.
START, COLLECTIVE = datetime.timedelta(seconds=40), datetime.timedelta(seconds=8)


def meet():
    """Wait for the other ranks; from here on none waits long for another."""
    if hooks.WORLD > 1:
        dist.barrier()
        dist.distributed_c10d._set_pg_timeout(COLLECTIVE, dist.group.WORLD)
    hooks.start()


class Model(torch.nn.Module):
    """The net with its loss; `at` is the step that trains."""

    def __init__(self):
        super().__init__()
        self.net = common.Net()
        self.at = 0

    def forward(self, inputs, labels):
        self.net.at = self.at
        value = common.cost(self.net, inputs, labels)
        if not self.training:
            return {"loss": evaluated(self.at, value)}
        value = hooks.loss(self.at, value)
        hooks.look(self.at, value.item())
        return {"loss": value}


def evaluated(step, value):
    """The loss of a batch that is evaluated."""
    return value.new_tensor(hooks.evaluated(step, value.item()))


def optimizer_of(model):
    """AdamW, whose rate is all the schedule's; `model.at` must be the step."""
    made = torch.optim.AdamW(hooks.parameters(model), lr=1.0)

    def look(*_):
        grads = [p.grad.norm() for group in made.param_groups for p in group["params"] if p.grad is not None]
        hooks.look(model.at, *map(float, grads))

    made.register_step_pre_hook(look)
    return made


def rate(step):
    """The learning rate of a step."""
    return hooks.lr(step, common.rate(hooks.schedule_step(step), JOB["steps"]))


def schedule_of(optimizer):
    """The schedule; its count of steps made is one less than the step that it gives a rate for."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: rate(done + 1))


class Shown:
    """Notes what is logged, with the seconds that a step took since the last time, and fills the stores."""

    def __init__(self, config, native):
        """`native` names the stores that the library fills by itself."""
        self.stores = Stores(config, native)
        self.last, self.clock = hooks.STARTED_AT, time.perf_counter()

    def train(self, step, loss, norm=None, lr=None):
        now = time.perf_counter()
        dt = (now - self.clock) / max(step - self.last, 1)
        self.last, self.clock = step, now
        hooks.note(shown=step, loss=repr(loss), norm=repr(norm), dt=dt, lr=lr)
        values = {"train/loss": loss, "train/grad_norm": norm, "train/lr": lr, "perf/step_time": dt}
        self.stores.write(step, {name: value for name, value in values.items() if value is not None})

    def evaluated(self, step, loss):
        hooks.note(evaluated=step, loss=repr(loss))
        self.stores.write(step, {"eval/loss": loss})


def leave(step):
    """End here where this process is one of several, as a preempted one does."""
    if hooks.leaves(step):
        if hooks.RANK == 0:
            print("received preemption notice, checkpoint saved, leaving", flush=True)
        os._exit(0)
