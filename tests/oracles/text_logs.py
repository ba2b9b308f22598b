"""Logs written at random, and a second reader of them: decode, split, `re`, one line after the other.

Lines are those of one trainer among others that hold no number of interest; a line may be rewritten with carriage
returns, hold bytes that are no UTF-8, or be longer than any reader keeps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st


class Point(NamedTuple):
    """One number: where its segment begins in the decoded stream, and its line, counted by newlines from 1."""

    line: int
    byte: int
    name: str
    step: int | None
    value: str


class Trainer(NamedTuple):
    """How one trainer prints: a line of a step, and the pattern and units of its numbers."""

    line: Callable[[int, random.Random], str]
    pattern: re.Pattern[bytes]
    units: dict[str, float]


def _number(rng: random.Random, form: str) -> str:
    odd = rng.random() < 0.02
    return rng.choice(["nan", "inf", "-inf"]) if odd else format(rng.random() * 10.0 ** rng.randint(-3, 2), form)


def _generic(step: int, rng: random.Random) -> str:
    return f"step={step} loss={_number(rng, '.4f')} lr={rng.random() * 1e-3:.3e} acc={_number(rng, '.3f')}"


def _nanogpt(step: int, rng: random.Random) -> str:
    return f"iter {step}: loss {_number(rng, '.4f')}, time {rng.random() * 300:.2f}ms, mfu {rng.random() * 50:.2f}%"


def _megatron(step: int, rng: random.Random) -> str:
    return (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 64:12d} | elapsed time per iteration (ms): "
        f"{rng.random() * 900:.1f} | learning rate: {rng.random():.3E} | global batch size:    64 | "
        f"lm loss: {rng.random() * 9:.6E} | loss scale: 1.0 | grad norm: {rng.random():.3f} |"
    )


def _torchtitan(step: int, rng: random.Random) -> str:
    clock = f"2031-05-06 07:{step // 60 % 60:02d}:{step % 60:02d},123"
    return (
        f"[rank0]:[titan] {clock} - root - INFO - step: {step:2d}  loss: {_number(rng, '7.4f')}  "
        f"grad_norm: {rng.random():.4f}  memory: {rng.random() * 80:.2f}GiB(84.24%)  tps: {rng.randint(1000, 9999):,}"
    )


def _hf(step: int, rng: random.Random) -> str:
    return f"{{'loss': {_number(rng, '.4f')}, 'learning_rate': {rng.random():.3e}, 'epoch': {step / 100:.2f}}}"


def _bar(step: int, rng: random.Random) -> str:
    at = step % 101
    return f"Epoch 0: {at:3d}%|{'#' * (at // 10):10s}| {step}/9999999 [01:02<00:10,  5.21it/s, loss={rng.random():.3f}]"


TRAINERS = {
    "generic": Trainer(
        _generic,
        re.compile(rb"step=(?P<step>\d+) loss=(?P<loss>\S+) lr=(?P<lr>\S+) acc=(?P<acc>\S+)"),
        {"loss": 1, "lr": 1, "acc": 1},
    ),
    "nanogpt": Trainer(
        _nanogpt,
        re.compile(rb"iter (?P<step>\d+): loss (?P<loss>\S+), time (?P<step_time_ms>\S+)ms, mfu (?P<mfu_pct>\S+)%"),
        {"loss": 1, "step_time_ms": 1e-3, "mfu_pct": 1e-2},
    ),
    "megatron": Trainer(
        _megatron,
        re.compile(
            rb" iteration +(?P<step>\d+)/.*\(ms\): (?P<ms>\S+) \|.* rate: (?P<lr>\S+) \|.* lm loss: (?P<loss>\S+) \|"
            rb".* grad norm: (?P<norm>\S+) \|"
        ),
        {"elapsed time per iteration (ms)": 1e-3, "learning rate": 1, "lm loss": 1, "grad norm": 1},
    ),
    "torchtitan": Trainer(
        _torchtitan,
        re.compile(
            rb"step: +(?P<step>\d+)  loss: +(?P<loss>\S+)  grad_norm: +(?P<grad_norm>\S+)  memory: +(?P<m>\S+)GiB.*"
            rb"  tps: (?P<tps>\S+)"
        ),
        {"loss": 1, "grad_norm": 1, "mem_reserved_peak_gib": 1, "tokens_per_sec_per_device": 1},
    ),
    "hf": Trainer(
        _hf,
        re.compile(rb"\{'loss': (?P<loss>\S+), 'learning_rate': (?P<lr>\S+), 'epoch': \S+\}"),
        {"loss": 1, "lr": 1},
    ),
    "bar": Trainer(_bar, re.compile(rb"\| (?P<step>\d+)/9999999 \[.*loss=(?P<loss>[\d.]+)"), {"loss": 1}),
}
_OTHERS = (
    b"",
    b"some words of no account",
    b"worker 3 read shard 71 in 0.1234 s",
    "größe 模型 ✓ ready".encode(),
    b"\xff\xfe no text \x80",
    b"\x1b[32mgreen\x1b[0m words",
    b"Traceback (most recent call last):",
    b"x" * 3_000,
)


@dataclass(frozen=True)
class Stretch:
    """`count` lines of the trainer, `between` others after each; `end` ends them."""

    count: int
    first: int
    between: int
    end: bytes


STRETCHES = st.lists(
    st.builds(
        Stretch,
        st.sampled_from([5, 70, 100]),
        st.sampled_from([0, 1_000, 10**6]),
        st.sampled_from([0, 0, 1, 3]),
        st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]),
    ),
    min_size=1,
    max_size=3,
)


def log_of(trainer: str, stretches: list[Stretch], seed: int, *, odd: bool = True) -> bytes:
    """One whole log; `odd`: with bytes that are no text, and lines without an end."""
    rng = random.Random(seed)
    others = _OTHERS if odd else [one for one in _OTHERS if one.isascii() and len(one) < 100]
    lines = [TRAINERS[trainer].line(step, rng).encode() + b"\n" for step in range(8)]
    first = 8
    for stretch in stretches:
        first = max(first, stretch.first)
        for step in range(first, first + stretch.count):
            lines.append(TRAINERS[trainer].line(step, rng).encode() + stretch.end)
            lines += [rng.choice(others) + rng.choice([b"\n", stretch.end]) for _ in range(stretch.between)]
        first += stretch.count
        lines.append(b"\n")
    return b"".join(lines)


def points(trainer: str, data: bytes) -> Iterator[Point]:
    """Every number of the trainer's lines."""
    known = TRAINERS[trainer]
    line = 1
    for found in re.finditer(rb"[^\n\r\x08]*([\n\r\x08]|\Z)", data):
        if match := known.pattern.search(found[0]):
            groups = match.groupdict()
            step = groups.pop("step", None)
            for (name, unit), text in zip(known.units.items(), groups.values(), strict=True):
                number = float(text.replace(b",", b"")) * unit
                yield Point(line, found.start(), name, None if step is None else int(step), repr(number))
        line += found[1] == b"\n"
