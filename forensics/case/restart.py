"""How a trainer is told to start from a checkpoint, and to change a setting: options to copy, quoted for a shell.

Paths come from the run, so they are quoted whatever they hold; a control character in one makes it not a command at
all.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Sequence

from forensics.dialects.spec import Dialect
from forensics.patterns import lazily

_CONTROL = lazily(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

#: The name of a folder that holds the checkpoints of all steps: it counts nothing and is no file.
_OF_ALL = lazily(r"[^\d.]+")
_KEY = lazily(r"[A-Za-z_][\w./-]*")


def restart_command(trainers: Iterable[Dialect], step: int, path: str | None) -> str:
    """Give the options that load the checkpoint in the first trainer that has some, else a sentence."""
    if path is not None and _CONTROL.search(path):
        return f"resume from the checkpoint of step {step}"
    options = next((trainer.restart for trainer in trainers if trainer.restart), None)
    if options is None or (path is None and re.search("{path}|{parent}", options)):
        return f"resume from {shlex.quote(path)}" if path else f"resume from the checkpoint of step {step}"
    where = path or ""
    parent = (
        where.rstrip("/")
        if _OF_ALL.fullmatch(posixpath.basename(where.rstrip("/")))
        else posixpath.dirname(where.rstrip("/"))
    )
    return options.format(path=shlex.quote(where), parent=shlex.quote(parent or "."), step=step)


def options_of(trainers: Sequence[Dialect], key: str, value: str) -> tuple[str, ...]:
    """Give the option that sets a setting in the first trainer that starts again by options; nothing without one.

    `key` is as the run's files have it; one that is more than a dotted name is no option.
    """
    form = next((trainer.option for trainer in trainers if trainer.restart), "")
    if not form or not _KEY.fullmatch(key):
        return ()
    name = key.replace("/", ".").rsplit(".", 1)[-1]
    known = {"key": key.replace("/", "."), "name": name, "dashed": name.replace("_", "-")}
    return (form.format(**known, value=shlex.quote(value)),)
