"""What names of folders and files tell: of which checkpoint a path is, and what a numbered folder beside its like is.

A row of `files/checkpoints.jsonl` has `row` (its name), `of` (`folder` or `file`), `words` (a pattern of the whole
name, in which the group `step` counts optimizer steps and `epoch` epochs; `{weights}` are the endings of files of
weights), names that it is `like` and `unlike`, and `source`, the trainer that gives them. The first row that fits is
taken.

A row of `files/folders.jsonl` has `is` (`part` of one job or a `run` of its own), `names` (a pattern of what stands
before the number) and its `source`; or `holds`, the path of a file that the program writes once in the folder of each
run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from forensics.knowledge._rows import Row, bare_rows, rows_of
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily

_INT64_DIGITS = 18
#: Endings of files that hold weights or a whole model.
WEIGHTS = rf"\.(?:{'|'.join(map(re.escape, keys_of('ending_of_weights')))})"
_ENDING = lazily(WEIGHTS + r"\Z")
#: Orbax names a folder by its step alone, below a folder of checkpoints.
_BARE = lazily(r"(?P<step>\d+)\Z")
_HOME = lazily(r"checkpoints?|ckpts?", re.IGNORECASE)
_TEMPORARY = lazily(r"(?:tmp|temp)[-_.].*|.*[-_.]tmp|.*\.orbax-checkpoint-tmp.*", re.IGNORECASE)
_UNFINISHED = lazily(r"[-_.]tmp\Z|\.orbax-checkpoint-tmp.*\Z", re.IGNORECASE)


class CheckpointName(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    of: str
    words: str
    like: tuple[str, ...]
    unlike: tuple[str, ...]
    source: str

    @property
    def compiled(self) -> re.Pattern[str]:
        """The pattern of a whole name."""
        return re.compile(self.words.replace("{weights}", WEIGHTS) + r"\Z")


def checkpoint_names() -> tuple[CheckpointName, ...]:
    """Give every row, in the order in which they are asked."""
    return rows_of("files/checkpoints.jsonl", CheckpointName)


@cache
def _patterns(of: str) -> tuple[re.Pattern[str], ...]:
    return tuple(row.compiled for row in checkpoint_names() if row.of == of)


def _first(of: str, name: str) -> re.Match[str] | None:
    return next((match for pattern in _patterns(of) if (match := pattern.match(name))), None)


@dataclass(frozen=True, slots=True)
class Named:
    """What a path tells of a checkpoint: its own path, its step or the epoch after which it was saved.

    `temporary`: by a name such as `tmp-…`, its save did not end.
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
    if (found := _first("file", parts[-1])) is not None:
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
    found = _first("folder", name)
    if found is None and index and _HOME.fullmatch(parts[index - 1]):
        return _BARE.match(name)
    return found


def _named(path: str, found: re.Match[str], *, temporary: bool) -> Named:
    places = {
        name: int(digits) for name, digits in found.groupdict().items() if digits and len(digits) <= _INT64_DIGITS
    }
    return Named(path, places.get("step"), places.get("epoch"), temporary)


def is_weights(path: str) -> bool:
    """Whether a path is that of a file of weights, by its ending."""
    return _ENDING.search(path) is not None


def is_part_of_job(name: str) -> bool:
    """Whether folders of such a name are ranks, nodes, attempts or products of one job; bare numbers are."""
    return name.isdigit() or _of_folders("part", r"[_-]?s?\d*").fullmatch(name) is not None


def home_of(path: str) -> str | None:
    """The folder of a run, where a path names the file that its program writes once into it."""
    found = _held().fullmatch(path)
    return found[1] if found is not None else None


@cache
def _held() -> re.Pattern[str]:
    held = (row["holds"] for row in bare_rows("files/folders.jsonl") if "holds" in row)
    return re.compile(f"(.+)/(?:{'|'.join(held)})")


def is_run(name: str) -> bool:
    """Whether folders of such a name are runs, though one of them died before it trained."""
    return _of_folders("run", r"[_-]?\d+").fullmatch(name) is not None


@cache
def _of_folders(kind: str, number: str) -> re.Pattern[str]:
    names = "|".join(row["names"] for row in bare_rows("files/folders.jsonl") if row["is"] == kind and "names" in row)
    return re.compile(f"(?i)(?:{names}){number}")
