"""Logs as trainers print them, from functions of the record: noise is drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from math import cos, exp, nan, pi
from random import Random

#: A value of the record with this number, counted from 0.
Value = Callable[[int], float]

FINE_TUNING = """\
base_model: meta-llama/Llama-3.1-8B
datasets:
  - path: data/chat.jsonl
    type: chat_template
learning_rate: 0.00002
num_epochs: 3
micro_batch_size: 2
gradient_accumulation_steps: 4
"""
ADAPTER = FINE_TUNING.replace("0.00002", "0.0002") + "adapter: lora\nlora_r: 16\nlora_alpha: 32\n"


@cache
def _noise(seed: int, n: int) -> float:
    """Normal noise of one record, the same for the same seed."""
    return Random(f"{seed} {n}").gauss(0, 1)


def noisy(level: Value, sd: float, seed: int = 0) -> Value:
    """A level with normal noise on it, the same for the same seed."""
    return lambda n: level(n) + _noise(seed, n) * sd


def spread(level: float, sd: float = 0.15, seed: int = 0) -> Value:
    """A positive level with noise on its logarithm, as gradient norms have it."""
    return lambda n: level * exp(_noise(seed, n) * sd)


def falling(first: float, last: float, records: float = 25.0) -> Value:
    """A loss that falls from one level to another within some records."""
    return lambda n: last + (first - last) * exp(-n / records)


def at(places: Collection[int], other: Value, value: float = nan) -> Value:
    """Another value at some records."""
    return lambda n: value if n in places else other(n)


def cosine(peak: float, records: int, warmup: int = 10) -> Value:
    """A rate that warms up along a line and falls along a cosine to zero."""
    return lambda n: (
        peak * (n + 1) / warmup if n < warmup else peak * (1 + cos(pi * (n - warmup) / (records - warmup))) / 2
    )


def steps(records: int, **values: Value) -> str:
    """Lines of `step=1 loss=2.31`, a step each."""
    return "".join(
        f"step={n + 1} " + " ".join(f"{name}={value(n):.6g}" for name, value in values.items()) + "\n"
        for n in range(records)
    )


def trainer(
    records: int,
    values: Mapping[str, Value],
    *,
    epochs: int = 3,
    evals: Value | None = None,
    every: int = 30,
    ended: bool = True,
) -> str:
    """A log of the Hugging Face Trainer with its bar, a record for each step, and evaluations between them."""
    lines: list[str] = []
    for n in range(records):
        epoch = epochs * (n + 1) / records
        told = ", ".join(f"'{name}': {value(n):.6g}" for name, value in values.items())
        lines += [f" {100 * (n + 1) // records}%|#   | {n + 1}/{records} [00:01<00:09,  1.02s/it]"]
        lines += [f"{{{told}, 'epoch': {epoch:.4f}}}"]
        if evals is not None and (n + 1) % every == 0:
            lines += [f"{{'eval_loss': {evals(n):.6g}, 'eval_runtime': 3.1, 'epoch': {epoch:.4f}}}"]
    if ended:
        lines += [f"{{'train_runtime': 812.3, 'train_samples_per_second': 7.9, 'train_loss': 1.0, 'epoch': {epochs}}}"]
    return "\n".join(lines) + "\n"


def supervised(
    records: int = 200, loss: Value | None = None, norm: Value | None = None, rate: Value | None = None
) -> dict[str, Value]:
    """What a healthy fine-tuning logs, with what is given in its place."""
    return {
        "loss": loss or noisy(falling(1.9, 0.9), 0.03),
        "grad_norm": norm or spread(0.6),
        "learning_rate": rate or cosine(2e-4, records),
    }
