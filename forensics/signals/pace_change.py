"""Whether steps became slower, from where, and how: a level that rose, a ramp, or more frequent stalls.

Two tiers. A change that noise without long memory cannot explain is *possible*; one that also holds when the noise is
extrapolated to the length of the parts, as 1/f noise demands, is *confirmed*. The method and what it was measured on:
docs/explanation/slowdown.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import Literal

import numpy as np

from forensics.signals.pace_levels import Bounds, Levels, best_cut, blocks, levels
from forensics.signals.pace_ramp import ramp_of
from forensics.signals.pace_stalls import stalls_of
from forensics.signals.pace_steady import Steady, least_effect

Kind = Literal["lasting", "transient"]
Form = Literal["jump", "ramp", "stalls"]


_MODES_Z = 1.5  # how much further a change must stand out of a series with modes to be confirmed


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts as slower: `effect` is relative, `z` in deviations at infinite length, `cap` for `confirmed`."""

    effect: float = 0.05
    z: float = 4.2
    cap: float = 1.6
    brief: int = 20


@dataclass(frozen=True, slots=True)
class Change:
    """A slowdown: first and last slow record (positions in the steady series), how much, and how sure.

    `ratio` is the time per step after over before; for stalls, one plus the added time. `end` is the record after the
    last slow one. `cuts` are all records at which the level changed.
    """

    kind: Kind
    form: Form
    first: int
    end: int
    before: float
    ratio: float
    z: float
    confirmed: bool
    cuts: tuple[int, ...] = ()


def change_of(series: Steady, settings: Settings | None = None) -> Change | None:
    """Find the slowdown of a series, or nothing; a lasting one before a transient one."""
    settings = settings or Settings()
    found = _level_change(series, settings, cap=1.0)
    if found is not None and found.kind == "lasting":
        strict = _level_change(series, settings, cap=settings.cap)
        sure = strict is not None and strict.kind == "lasting"
        return replace(found, confirmed=sure and (not series.multimodal or found.z >= _MODES_Z * settings.z))
    stalls = None if series.multimodal else stalls_of(series.irregular, least_added=settings.effect)
    if stalls is not None:
        before = float(np.median(series.seconds))
        return Change(
            "lasting", "stalls", stalls.index, len(series), before, 1 + stalls.added, stalls.z, confirmed=True
        )
    return found


def levels_of(series: Steady, settings: Settings, cap: float = 1.0) -> Levels:
    """Give the levels of a series: bounds by its length and kind."""
    values, block = blocks(series.values)
    n = len(values)
    shortest = min(max(5, min(30, n // 20)), max(4, n // 4))
    z = settings.z * (1 + 4 / n)
    if series.multimodal:
        shortest, z = max(shortest, min(50 // block + 1, n // 5)), 1.15 * z
    return levels(values, block, Bounds(z, least_effect(settings.effect), shortest, cap))


def _level_change(series: Steady, settings: Settings, cap: float) -> Change | None:
    found = levels_of(series, settings, cap)
    means = np.asarray(found.means)
    slow = means - means[0] >= 0.999 * least_effect(settings.effect)
    if not slow.any():
        return None
    cuts = tuple(edge * found.block for edge in found.edges[1:-1])
    if not slow[-1]:
        return _transient(series, found, slow, settings, cuts)
    part = len(means) - 1
    while slow[part - 1]:
        part -= 1
    z = found.z(part, cap)
    if z <= settings.z * (1 + 4 / found.edges[-1]):
        return None
    climb = _climb_start(means, part, settings)
    first = _exactly(series, found, found.edges[climb])
    ramp = ramp_of(series.values, found) if cap == 1.0 else None
    return Change(
        kind="lasting",
        form="jump" if ramp is None else "ramp",
        first=first if ramp is None else min(len(series) - 1, ramp.first),
        end=len(series),
        before=exp(means[0]),
        ratio=exp(means[-1] - means[0]),
        z=z,
        confirmed=False,
        cuts=cuts,
    )


def _climb_start(means: np.ndarray, part: int, settings: Settings) -> int:
    """Go back over smaller rises that led up to a slow part."""
    least = least_effect(settings.effect) / 4
    while part > 1 and means[part - 2] + least < means[part - 1] < means[part]:
        part -= 1
    return part


def _transient(
    series: Steady, found: Levels, slow: np.ndarray, settings: Settings, cuts: tuple[int, ...]
) -> Change | None:
    first = int(np.argmax(slow))
    last = first
    while slow[last]:
        last += 1
    if (found.edges[last] - found.edges[first]) * found.block < settings.brief:
        return None
    top = max(found.means[first:last])
    size = found.size(first, last)
    z = (top - found.means[0]) / (found.noise.sd * (1 / size + 1 / found.size(0, first)) ** 0.5)
    return Change(
        kind="transient",
        form="jump",
        first=_exactly(series, found, found.edges[first]),
        end=_exactly(series, found, found.edges[last]),
        before=exp(found.means[0]),
        ratio=exp(top - found.means[0]),
        z=z,
        confirmed=False,
        cuts=cuts,
    )


def _exactly(series: Steady, found: Levels, edge: int) -> int:
    """Find the record of a cut, within forty records or three blocks of where it was found."""
    near = max(3 * found.block, 40)
    first = max(0, edge * found.block - near)
    window = series.values[first : edge * found.block + near]
    best = best_cut(window, 2) if len(window) >= 6 else None
    return edge * found.block if best is None else first + best[0]
