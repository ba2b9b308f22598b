"""How each trainer is told to start from a checkpoint: a command fragment to copy, quoted for a shell.

Paths come from the run, so they are quoted whatever they hold; a control character in one makes it not a command at
all.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from types import MappingProxyType

#: Dialect → options that load a checkpoint, as the trainer's own documentation names them.
#: `{path}` the checkpoint, `{parent}` its folder, `{step}` its step.
COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "kempnerforge": "--checkpoint.load_path={path}",
        "llama_factory": "--resume_from_checkpoint {path}",
        "trl": "--resume_from_checkpoint {path}",
        "swift": "--resume_from_checkpoint {path}",
        "hf_trainer": "--resume_from_checkpoint {path}",
        "trainer_state": "--resume_from_checkpoint {path}",
        "accelerate": "--resume_from_checkpoint {path}",
        "torchtitan": "--checkpoint.load_step={step}",
        "megatron_deepspeed": "--load {parent} --ckpt-step {step}",
        "megatron": "--load {parent} --ckpt-step {step}",
        "nemo": "ckpt_path={path}",
        "lightning": "ckpt_path={path}",
        "composer": "load_path={path}",
        "olmo": "--load_path={path}",
        "fairseq": "--restore-file {path}",
        "mmengine": "--resume {path}",
        "detectron2": "--resume MODEL.WEIGHTS {path}",
        "timm": "--resume {path}",
        "litgpt": "--resume {path}",
        "ultralytics": "resume=True model={path}",
        "verl": "trainer.resume_mode=resume_path trainer.resume_from_path={path}",
        "openrlhf": "--load_checkpoint --ckpt_path {parent}",
        "maxtext": "load_full_state_path={path}",
    }
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def restart_command(formats: Iterable[str], step: int, path: str | None) -> str:
    """Give the options that load the checkpoint in the trainer whose log was read, else a sentence.

    `formats` are the formats of the run's sources, each one or several names.
    """
    if path is not None and _CONTROL.search(path):
        return f"resume from the checkpoint of step {step}"
    names = [name for given in formats for name in re.findall(r"\w+", given)]
    known = next((COMMANDS[name] for name in COMMANDS if name in names), None)
    if known is None or (path is None and "{path}" in known + known.replace("{parent}", "{path}")):
        return f"resume from {shlex.quote(path)}" if path else f"resume from the checkpoint of step {step}"
    where = path or ""
    parent = posixpath.dirname(where.rstrip("/")) or "."
    return known.format(path=shlex.quote(where), parent=shlex.quote(parent), step=step)
