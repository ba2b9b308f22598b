"""What a seed asks for: jobs, each with a trainer, what it leaves on disk, and one fault or none.

The same seed gives the same jobs. A plan is data: nothing here trains, and nothing here knows forensics.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from typing import Any

from faults import CONTROLS, FAULTS
from faults.row import Fault
from trainers import BY_NAME, ROWS, Trainer

#: At least one job in four has no fault, so that a false alarm costs as much as a miss.
CONTROL_SHARE = 0.27
_MOST_STORES = 2
#: So many of the jobs of 4 ranks have 8: about one job in twenty of a set.
_LARGE, _LARGE_SHARE = 8, 0.6


@dataclass(frozen=True, slots=True)
class Job:
    """One training job; `fault` names a row of `faults`, `at` and `rank` where it begins."""

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

    @property
    def resumes_at(self) -> int:
        """The last checkpoint before the fault: where a second process goes on."""
        return self.at // self.save_every * self.save_every

    def document(self) -> dict[str, Any]:
        """What the job's own process reads."""
        return asdict(self)


def jobs(seed: int, count: int) -> list[Job]:
    """The first `count` jobs of a seed."""
    rng = random.Random(f"plan-{seed}")
    return [_job(number, seed, random.Random(rng.getrandbits(64))) for number in range(count)]


def takes(trainer: Trainer, fault: Fault) -> bool:
    """Whether a trainer calls what a fault needs, in a world that the fault can have, and leaves what it needs."""
    return (
        fault.needs <= trainer.hooks
        and set(fault.leaves) <= trainer.stores
        and min(fault.ranks) <= trainer.ranks
        and fault.starts <= trainer.starts
        and (not fault.trainers or trainer.name in fault.trainers)
    )


def _job(number: int, seed: int, rng: random.Random) -> Job:
    fault = rng.choice(CONTROLS if rng.random() < CONTROL_SHARE else FAULTS)
    trainer = BY_NAME[rng.choice([row.name for row in ROWS if takes(row, fault)])]
    ranks = rng.choice([ranks for ranks in fault.ranks if ranks <= trainer.ranks])
    if ranks == 4 and trainer.ranks >= _LARGE and rng.random() < _LARGE_SHARE:
        ranks = _LARGE
    steps = min(rng.randrange(*fault.steps), trainer.steps)
    save_every = rng.choice([20, 40, 50])
    at = max(int(steps * rng.uniform(*fault.begins)), 1)
    if fault.starts > 1:
        at = max(at, save_every + 1)
    others = [] if fault.bare else sorted(trainer.stores - set(fault.leaves))
    stores = rng.sample(others, min(rng.randrange(_MOST_STORES + 1), len(others)))
    return Job(
        number=number,
        seed=seed,
        trainer=trainer.name,
        fault=fault.name,
        steps=steps,
        log_every=rng.choice([1, 1, 2, 5]),
        ranks=ranks,
        at=at,
        rank=rng.randrange(ranks),
        save_every=save_every,
        eval_every=rng.choice(fault.eval_every),
        stores=(*fault.leaves, *sorted(stores)),
        numbers={name: round(rng.uniform(*span), 4) for name, span in fault.numbers.items()},
    )
