"""A checkpoint that a run left: a value that verdicts and answers carry, and what its path tells of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.patterns import lazily

_INT64_DIGITS = 18
#: Endings of files that hold weights or a whole model.
_KINDS = r"\.(?:pth?|pth\.tar|ckpt|bin|npz|safetensors|keras|weights\.h5|h5|hdf5|th|pdparams|msgpack|caffemodel)"
#: Names of folders, each with the trainer that gives it; `step` counts optimizer steps, `epoch` epochs.
_FOLDERS = (
    (r"(?:tmp-)?checkpoint-(?P<step>\d+)", "transformers"),
    (r"global_step_?(?P<step>\d+)", "DeepSpeed, verl"),
    (r"iter_(?P<step>\d{7,})", "Megatron-LM"),
    (r"step[-_]?(?P<step>\d+)(?:-unsharded)?", "KempnerForge, torchtitan, OLMo"),
    (r".*epoch=\d+-step=(?P<step>\d+).*", "Lightning"),
    (r"ep\d+-ba(?P<step>\d+)", "Composer"),
    (r"(?:ckpt|checkpoint|model)[-_](?P<step>\d+)", "many"),
    (r"epoch[-_=]?(?P<epoch>\d+)", "Accelerate, torchtune"),
)
_FILES = (
    (r".*epoch=\d+-step=(?P<step>\d+).*\.ckpt", "Lightning"),
    (r"ep\d+-ba(?P<step>\d+)-rank\d+\.pt", "Composer"),
    (r"checkpoint_\d+_(?P<step>\d+)\.pt", "fairseq"),
    (r"iter_(?P<step>\d+)\.pth", "mmengine"),
    (
        rf"(?:(?:flax_)?model|state|optim|ckpt|checkpoint|snap(?:shot)?)[-_.]?(?:step|iter)?[-_]?(?P<step>\d+)(?:_(?:rank)?\d+)?{_KINDS}",
        "many",
    ),
    (rf"step[-_]?(?P<step>\d+){_KINDS}", "many"),
    (rf"(?:.*[-_.])?epoch[-_=]?(?P<epoch>\d+)(?:[-_.].*)?{_KINDS}", "mmengine, Keras's ModelCheckpoint"),
    (r"(?:weights|model|cp)[-.](?P<epoch>\d+)(?:-.*)?\.(?:keras|weights\.h5|h5|hdf5|ckpt)", "the examples of Keras"),
    (r".*_(?P<step>\d+)_steps\.zip", "Stable-Baselines3's CheckpointCallback"),
    (rf"(?P<epoch>\d+)epoch{_KINDS}", "ESPnet"),
    (r"model\.ckpt-(?P<step>\d+)\.(?:index|meta|data-\d+-of-\d+)", "TensorFlow's Estimator"),
    (r"DONE_(?P<step>\d+)", "llm.c"),
)
_FOLDER = tuple(lazily(pattern + r"\Z") for pattern, _ in _FOLDERS)
_FILE = tuple(lazily(pattern + r"\Z") for pattern, _ in _FILES)
#: Orbax names a folder by its step alone, below a folder of checkpoints.
_BARE = lazily(r"(?P<step>\d+)\Z")
_HOME = lazily(r"checkpoints?|ckpts?", re.IGNORECASE)
_TEMPORARY = lazily(r"(?:tmp|temp)[-_.].*|.*[-_.]tmp|.*\.orbax-checkpoint-tmp.*", re.IGNORECASE)
_UNFINISHED = lazily(r"[-_.]tmp\Z|\.orbax-checkpoint-tmp.*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint to start from; `path` is as the run wrote it, or relative to the run when found on disk."""

    step: int
    path: str | None


@dataclass(frozen=True, slots=True)
class Named:
    """What a path tells of a checkpoint: its own path, its step or the epoch after which it was saved.

    `temporary`: by a name such as `tmp-…`, its save did not come to its end.
    """

    path: str
    step: int | None = None
    epoch: int | None = None
    temporary: bool = False

    @property
    def has_place(self) -> bool:
        """Whether the path says where in training the checkpoint was saved."""
        return self.step is not None or self.epoch is not None


def named(path: str) -> Named | None:
    """Tell to which checkpoint a file belongs; None for a file at the top of the run without a step in its name.

    A step in the file's own name makes the file the checkpoint; else the innermost folder with a step is it; else the
    folder of the file, with no step.
    """
    parts = path.split("/")
    temporary = any(_TEMPORARY.fullmatch(part) for part in parts)
    for index in range(len(parts) - 2, -1, -1):
        if (found := _of_folder(parts, index)) is not None:
            return _named("/".join(parts[: index + 1]), found, temporary=temporary)
    found = next((match for pattern in _FILE if (match := pattern.match(parts[-1]))), None)
    if found is not None:
        return _named(path, found, temporary=temporary)
    return Named("/".join(parts[:-1]), temporary=temporary) if len(parts) > 1 else None


def whose(path: str) -> Named | None:
    """Tell which checkpoint a path in a log names, be it the folder, a file that is one, or a file inside of one."""
    found = named(f"{path.rstrip('/')}/.")
    if found is None or not found.has_place:
        found = named(path)
    return found if found is not None and found.has_place else None


def _of_folder(parts: list[str], index: int) -> re.Match[str] | None:
    name = _UNFINISHED.sub("", parts[index])
    found = next((match for pattern in _FOLDER if (match := pattern.match(name))), None)
    if found is None and index and _HOME.fullmatch(parts[index - 1]):
        return _BARE.match(name)
    return found


def _named(path: str, found: re.Match[str], *, temporary: bool) -> Named:
    places = {
        name: int(digits) for name, digits in found.groupdict().items() if digits and len(digits) <= _INT64_DIGITS
    }
    return Named(path, places.get("step"), places.get("epoch"), temporary)
