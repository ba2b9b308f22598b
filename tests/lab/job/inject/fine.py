"""Noise that looks like a failure, and is none."""

import math
import random
import sys
import time
import traceback

import torch
from facts import AT, JOB, KIND, NUMBERS, RANK, WORLD

#: Steps of a loader's warm-up; steps from one overflow of the fp16 scale to the next; warm restarts of a schedule.
_FILLING, _GROWTH_INTERVAL, _CYCLES = 5, 37, 3
#: The step time of a host with neighbours differs by so much.
_JITTER = 0.10
_rng = random.Random(JOB["seed"] * 100 + JOB["number"] * 8 + RANK)
_WARNINGS = (
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order",
    "WARNING: retrying request 1/5 after 503",
    "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cuda', args...)` instead.",
)
_WORDS = (
    "config: nan_guard=True oom_retries=3 on_error=raise max_grad_norm=None",
    "hang watchdog armed, timeout 600 s; SIGTERM handler installed",
    "error rate of the last shard: 0.00 %, failed downloads: 0, NaN values: 0",
    "killed tasks are requeued; out of memory tasks are not",
)


def start():
    if KIND == "fine-words" and not RANK:
        print(*_WORDS, sep="\n", flush=True)


def loss(step, value):
    return value * NUMBERS["factor"] if KIND == "fine-spikes" and step % 41 == 17 else value


def scale(step):
    return KIND == "fine-skipped" and step % _GROWTH_INTERVAL == 3


def slower(step):
    if KIND == "fine-longer" and step >= AT:
        return 2.0
    return 1 + _JITTER * _rng.uniform(-1, 1) if KIND == "fine-jitter" else 1.0


def pause_s(step):
    return NUMBERS["seconds"] / step if KIND == "fine-loader" and step <= _FILLING else 0.0


def before(step):
    if step != AT:
        return
    if KIND == "fine-warnings":
        for text in _WARNINGS:
            print(text, file=sys.stderr, flush=True)
    elif KIND == "fine-caught":
        try:
            open("missing-cache.json")
        except OSError:
            traceback.print_exc()
            print("cache not found, rebuilding it", flush=True)
    elif KIND == "fine-retried":
        print(f"step {step}: CUDA out of memory caught, the batch is done again in 2 halves", flush=True)


def lr(step, rate):
    if KIND == "fine-cosine":
        cycle = math.ceil(JOB["steps"] / _CYCLES)
        return 6e-3 * (0.505 + 0.495 * math.cos(math.pi * ((step - 1) % cycle) / cycle))
    if KIND == "fine-decay":
        return min(rate, 6e-3 * (JOB["steps"] - step) / (JOB["steps"] - AT))
    return rate


def warmup(steps):
    return 0 if KIND == "fine-cosine" else steps


def batch(step, inputs, labels):
    if KIND == "fine-longer" and step >= AT:
        return torch.cat((inputs, inputs.flip(0)), 1), torch.cat((labels, labels.flip(0)), 1)
    if KIND == "fine-zero":
        return inputs, (5 * inputs + 3) % 64
    return inputs, labels


def leaves(step):
    if KIND == "fine-requeued" and step == AT // JOB["save_every"] * JOB["save_every"]:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        text = f"slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT {stamp} DUE TO JOB REQUEUE ***"
        print(text, file=sys.stderr, flush=True)
    return KIND in {"fine-resumed", "fine-requeued"}


def stops(step):
    return KIND == "fine-early" and step > AT and step % JOB["eval_every"] == 0


def interval(step, every):
    return every * 5 if KIND == "fine-interval" and step >= AT else every


def evaluating(_step):
    if KIND == "fine-pauses":
        time.sleep(NUMBERS["seconds"])


def saving(_step):
    if KIND == "fine-saves":
        time.sleep(NUMBERS["seconds"] * (1 if WORLD == 1 else 2))


def evaluation(step, how):
    if KIND == "fine-eval-noise":  # few documents, others each time
        return how | {"docs": int(NUMBERS["docs"]), "seed": step}
    if KIND == "fine-eval-batch" and step >= AT:
        return how | {"batch_size": 8}
    return how
