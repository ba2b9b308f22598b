"""What trains: a script for each, the hooks that it calls, the worlds that it runs in, and the stores that it can fill."""

from __future__ import annotations

from dataclasses import dataclass

#: The hooks of `job/hooks.py` that a loop of our own calls.
ALL = frozenset(
    ("lr", "schedule_step", "batch", "hidden", "loss", "before", "restore", "skips", "hides", "interval", "saving",
     "evaluating", "scale")
)  # fmt: skip
#: Those that only a loop of our own can call.
_LOOP = frozenset(
    ("joining", "resuming", "parameters", "gradients", "guards", "memory", "position", "evaluated", "stops", "leaving", "busy")
)  # fmt: skip
_OWN_STORES = frozenset(("tensorboard", "csv", "jsonl"))
_TRACKERS = frozenset(("wandb", "mlflow", "trackio", "tensorboard_ranks"))
#: What lies beside metrics; these need no more of a loop than where a step begins and ends.
_BESIDE = frozenset(("config", "env", "gpu_log", "host_log", "jobscript", "profile", "pyspy", "recorder", "stacks"))
#: These need the net at each checkpoint.
_OF_WEIGHTS = frozenset(("evals", "safetensors"))


@dataclass(frozen=True, slots=True)
class Trainer:
    """One row: `alone` where it does not run as ranks of torchrun."""

    name: str
    script: str
    hooks: frozenset[str]
    stores: frozenset[str] = frozenset()
    alone: bool = False


def _voice(name: str) -> Trainer:
    return Trainer(name, "train.py", ALL | _LOOP, _OWN_STORES | _TRACKERS | _BESIDE | _OF_WEIGHTS)


ROWS = (
    *map(_voice, ("print", "logging", "tqdm", "dict", "kempnerforge", "megatron", "torchtitan")),
    Trainer("hf", "hf.py", frozenset(("lr", "batch", "hidden", "before")), alone=True),
    Trainer("lightning", "lightning_job.py", frozenset(("lr", "batch", "hidden", "before")), alone=True),
)
BY_NAME = {row.name: row for row in ROWS}
