"""How a job is started and where its ranks write: by itself, under torchrun, or as tasks of SLURM with a log each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

#: What torchrun does with the ranks' output; the default leaves it in the launcher's own.
_TORCHRUN: tuple[tuple[str, ...], ...] = (
    (),
    ("--log-dir=logs", "--redirects=3"),
    ("--log-dir=logs", "--redirects=3", "--tee=3"),
    ("--log-dir=logs", "--tee=3"),
)
_SRUN_SHARE = 0.3


class Ranked(Protocol):
    """What a launch asks of a job."""

    @property
    def seed(self) -> int:
        """The seed of its set."""
        ...

    @property
    def number(self) -> int:
        """Its number in the set."""
        ...

    @property
    def ranks(self) -> int:
        """How many processes train together."""
        ...


def paired(job: Ranked) -> bool:
    """Whether the log and the errors are two files, as SLURM's are."""
    return job.number % 2 == 0


def log_name(job: Ranked) -> str:
    """The log of the job itself; its errors' name ends in `.err`."""
    return f"slurm-{_job_id(job)}.out" if paired(job) else "train.log"


def command(job: Ranked, python: str, script: Path) -> Sequence[str]:
    """The command line of a job."""
    if job.ranks == 1:
        return [python, str(script)]
    rng = random.Random(f"launch-{job.seed}-{job.number}")
    port = 20_000 + (job.seed * 977 + job.number * 13) % 30_000
    if rng.random() < _SRUN_SHARE:
        tasks = [f"--ntasks={job.ranks}", f"--port={port}", f"--job-id={_job_id(job)}"]
        return [python, str(script.parent / "srun.py"), *tasks, *(["--pair"] if paired(job) else []), str(script)]
    torchrun = [python, "-m", "torch.distributed.run", f"--nproc-per-node={job.ranks}", f"--master-port={port}"]
    return [*torchrun, *rng.choice(_TORCHRUN), str(script)]


def _job_id(job: Ranked) -> int:
    return 4000 + job.number
