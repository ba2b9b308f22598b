"""What a seed asks for: jobs, each with a trainer, what it leaves on disk, and one fault or none.

The same seed gives the same jobs. A plan is data: nothing here trains, and nothing here knows forensics.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import Any

from faults import CONTROLS, FAULTS, Fault

#: At least one job in four has no fault, so that a false alarm costs as much as a miss.
CONTROL_SHARE = 0.27
TRAINERS = ("print", "logging", "tqdm", "dict", "kempnerforge", "megatron", "torchtitan", "hf", "lightning")
#: Trainers whose loop is a library's own: they run alone and take a fault only through its batches, rates and hooks.
LIBRARIES = ("hf", "lightning")
STORES = ((), (), ("tensorboard",), ("csv",), ("jsonl",), ("tensorboard", "csv"))


@dataclass(frozen=True, slots=True)
class Job:
    """One training job; `fault` names a row of `faults.py`, `at` and `rank` where it begins."""

    number: int
    seed: int
    trainer: str
    fault: str
    steps: int
    log_every: int
    ranks: int = 1
    at: int = 0
    rank: int = 0
    save_every: int = 50
    eval_every: int = 0
    stores: tuple[str, ...] = ()
    numbers: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def name(self) -> str:
        """A folder name that says nothing of the fault."""
        return f"job-{self.seed}-{self.number:03d}"

    def document(self) -> dict[str, Any]:
        """What the job's own process reads."""
        return asdict(self)


def jobs(seed: int, count: int) -> list[Job]:
    """The first `count` jobs of a seed."""
    rng = random.Random(f"plan-{seed}")
    return [_job(number, seed, random.Random(rng.getrandbits(64))) for number in range(count)]


def _job(number: int, seed: int, rng: random.Random) -> Job:
    fault: Fault = rng.choice(CONTROLS if rng.random() < CONTROL_SHARE else FAULTS)
    trainer = rng.choice([t for t in TRAINERS if t not in LIBRARIES or fault.in_libraries])
    ranks = rng.choice(fault.ranks) if trainer not in LIBRARIES else 1
    steps = rng.randrange(*fault.steps)
    log_every = rng.choice([1, 1, 2, 5] if steps < 200 else [1, 2, 5, 10])
    at = int(steps * rng.uniform(*fault.begins))
    return Job(
        number=number,
        seed=seed,
        trainer=trainer,
        fault=fault.name,
        steps=steps,
        log_every=log_every,
        ranks=ranks,
        at=max(at, 1),
        rank=rng.randrange(ranks),
        save_every=rng.choice([20, 40, 50]),
        eval_every=rng.choice([0, 0, 25, 50]),
        stores=rng.choice(STORES) if trainer not in LIBRARIES else (),
        numbers={name: round(rng.uniform(*span), 4) for name, span in fault.numbers.items()},
    )
