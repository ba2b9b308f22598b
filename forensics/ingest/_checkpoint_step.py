"""Which checkpoint a path belongs to, and its step, by the names that trainers give their folders and files."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: name pattern → whose it is; the last group is the optimizer step
_FOLDERS = (
    r"(?:tmp-)?checkpoint-(\d+)",  # transformers
    r"global_step_?(\d+)",  # DeepSpeed, verl
    r"iter_(\d{7,})",  # Megatron-LM
    r"step[-_]?(\d+)(?:-unsharded)?",  # KempnerForge, torchtitan, OLMo
    r".*epoch=\d+-step=(\d+).*",  # Lightning
    r"ep\d+-ba(\d+)",  # Composer
    r"(?:ckpt|checkpoint|model)[-_](\d+)",  # many
    r"(\d+)",  # orbax, below a folder of checkpoints
)
_FILES = (
    r".*epoch=\d+-step=(\d+).*\.ckpt",  # Lightning
    r"ep\d+-ba(\d+)-rank\d+\.pt",  # Composer
    r"checkpoint_\d+_(\d+)\.pt",  # fairseq
    r"iter_(\d+)\.pth",  # mmengine
    r"(?:model|state|optim|ckpt|checkpoint)[-_]?(?:step|iter)?[-_]?(\d+)(?:_(?:rank)?\d+)?\.(?:pth?|ckpt|bin|npz|safetensors)",
    r"step[-_]?(\d+)\.(?:pth?|ckpt|safetensors|npz)",
    r"DONE_(\d+)",  # llm.c
)
_FOLDER = tuple(re.compile(pattern + r"\Z") for pattern in _FOLDERS[:-1])
_BARE = re.compile(_FOLDERS[-1] + r"\Z")
_FILE = tuple(re.compile(pattern + r"\Z") for pattern in _FILES)
_HOME = re.compile(r"checkpoints?|ckpts?", re.IGNORECASE)
_TEMPORARY = re.compile(r"(?:tmp|temp)[-_.].*|.*[-_.]tmp|.*\.orbax-checkpoint-tmp.*", re.IGNORECASE)
_UNFINISHED = re.compile(r"[-_.]tmp\Z|\.orbax-checkpoint-tmp.*\Z", re.IGNORECASE)
_INT64_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as its path tells it; `path` is relative to the run, `temporary` by a name such as `tmp-…`."""

    path: str
    step: int | None
    temporary: bool


def _step(match: re.Match[str]) -> int | None:
    digits = match.group(match.lastindex or 0)
    return int(digits) if len(digits) <= _INT64_DIGITS else None


def _folder_step(parts: list[str], index: int) -> int | None:
    name = _UNFINISHED.sub("", parts[index])
    for pattern in _FOLDER:
        if found := pattern.match(name):
            return _step(found)
    if index and _HOME.fullmatch(parts[index - 1]) and (found := _BARE.match(name)):
        return _step(found)
    return None


def checkpoint_of(path: str) -> Checkpoint | None:
    """The checkpoint that a file belongs to, or None for a file at the top of the run without a step in its name.

    A step in the file's own name makes the file the checkpoint; else the innermost folder with a step is it; else the
    folder of the file, with no step.
    """
    parts = path.split("/")
    temporary = any(_TEMPORARY.fullmatch(part) for part in parts)
    for index in range(len(parts) - 2, -1, -1):
        if (step := _folder_step(parts, index)) is not None:
            return Checkpoint("/".join(parts[: index + 1]), step, temporary)
    for pattern in _FILE:
        if found := pattern.match(parts[-1]):
            return Checkpoint(path, _step(found), temporary)
    return Checkpoint("/".join(parts[:-1]), None, temporary) if len(parts) > 1 else None
