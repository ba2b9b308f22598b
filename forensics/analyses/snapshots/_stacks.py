"""Stacks of a memory snapshot as text, each with its part of a training step."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import polars as pl
from msgspec import Struct

from forensics.analyses.snapshots._values import Stack
from forensics.knowledge.vocabulary import stands_for
from forensics.store.run import Run


class Phase(StrEnum):
    """The part of a step that a stack belongs to; `other` where it has no frame that says."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    OTHER = "other"


class Known(Struct, frozen=True):
    """One stack: its Python frames as text (all frames where there is none of Python), and its phase."""

    frames: Stack
    phase: Phase


_NOTHING = Known((), Phase.OTHER)


def known_stacks(run: Run, source: str) -> Mapping[int, Known]:
    """Give every stack of one source by its number."""
    frames = run.scan("frames").filter(pl.col("source") == source).select("frame", "file", "line", "function").collect()
    texts = {row[0]: row[1:] for row in frames.iter_rows()}
    rows = run.scan("stacks").filter(pl.col("source") == source).select("stack", "depth", "frame").collect()
    members: dict[int, list[int]] = {}
    for stack, _, frame in rows.sort("stack", "depth").iter_rows():
        members.setdefault(stack, []).append(frame)
    return {stack: _known([texts[one] for one in inner if one in texts]) for stack, inner in members.items()}


def stack_of(known: Mapping[int, Known], number: int | None) -> Known:
    """Give one stack; an empty one where none was recorded."""
    return _NOTHING if number is None else known.get(number, _NOTHING)


def _known(frames: list[tuple[str | None, int | None, str | None]]) -> Known:
    python = [one for one in frames if (one[0] or "").endswith(".py")]
    shown = tuple(f"{file or '??'}:{line or 0} {function or '?'}" for file, line, function in python or frames)
    return Known(shown, _phase(frames))


def _phase(frames: list[tuple[str | None, int | None, str | None]]) -> Phase:
    phase = Phase.OTHER
    for file, _, function in frames:
        name, place = (function or "").lower(), (file or "").lower()
        if stands_for("backward_name", name) or "torch/autograd/graph" in place:
            return Phase.BACKWARD
        if stands_for("optimizer_name", name) or "/optim/" in place or (name == "step" and "optim" in place):
            return Phase.OPTIMIZER
        if place.endswith(".py"):
            phase = Phase.FORWARD
    return phase
