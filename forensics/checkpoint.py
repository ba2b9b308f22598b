"""A checkpoint that a run left: a value that verdicts and answers carry."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint to start from; `path` is as the run wrote it, or relative to the run when found on disk."""

    step: int
    path: str | None
