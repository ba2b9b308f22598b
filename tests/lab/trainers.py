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
#: What a library lets in from outside: its optimizer, its schedule, its loader, its model and its callbacks.
_LIBRARY = frozenset(
    ("lr", "schedule_step", "batch", "hidden", "loss", "before", "restore", "saving", "evaluating", "evaluated", "joining",
     "leaving", "stops")
)  # fmt: skip
_TORCH = _LIBRARY | {"parameters", "gradients"}
#: Libraries keep checkpoints in layouts of their own, so that what needs the net at ours cannot follow them.
_STORES = _OWN_STORES | _TRACKERS | _BESIDE


@dataclass(frozen=True, slots=True)
class Trainer:
    """One row: at most `ranks` train together, and `starts` processes follow each other in one place, for at most `steps`.

    A library takes longer to import than a loop of our own to train: its limits keep a job below 60 s on two busy cores.
    Its files count `counts` for a step of ours, and show one in `window`.
    """

    name: str
    script: str
    hooks: frozenset[str]
    stores: frozenset[str] = frozenset()
    ranks: int = 1
    starts: int = 2
    steps: int = 140
    counts: float = 1
    window: int = 1


def _voice(name: str) -> Trainer:
    return Trainer(name, "train.py", ALL | _LOOP, _STORES | _OF_WEIGHTS, ranks=8, starts=4, steps=1000)


ROWS = (
    *map(
        _voice, ("print", "logging", "loguru", "rich", "json", "tqdm", "dict", "kempnerforge", "megatron", "torchtitan")
    ),
    Trainer("hf", "hf.py", _TORCH, _STORES, ranks=2),
    Trainer("accelerate", "accelerate_job.py", _TORCH | {"skips", "interval", "guards"}, _STORES, ranks=2),
    Trainer("lightning", "lightning_job.py", _TORCH, _STORES, ranks=2),
    Trainer("trl-sft", "trl_job.py", _LIBRARY | {"parameters"}, _STORES),
    Trainer("trl-dpo", "trl_job.py", (_LIBRARY | {"parameters"}) - {"batch"}, _STORES),
    # a bar that is drawn 20 times a second, with the mean of the epoch; or a line and a row of a table an epoch
    Trainer("keras", "keras_job.py", _LIBRARY, _STORES, window=2),
    Trainer("keras-epochs", "keras_job.py", _LIBRARY, _STORES, counts=1 / 5, window=5),
    # a step is a rollout of 32 timesteps; its table shows the loss of the updates before
    Trainer("sb3", "sb3_job.py", _LIBRARY - {"batch", "loss", "evaluated", "stops"}, _STORES, counts=32, window=2),
)
BY_NAME = {row.name: row for row in ROWS}
