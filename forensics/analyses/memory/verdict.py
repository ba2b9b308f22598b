"""The reading of a memory series: the shape of allocated memory together with that of reserved, unused memory.

One curve is not enough. A staircase is read as a leak and a steady slope as fragmentation by a common rule of thumb,
yet a leak at every step is a slope, and an allocator that fragments takes memory in whole pieces, which are stairs. So
both are given: the exact reading from the two curves, and the rule of thumb where it fits the one curve there is.
"""

from __future__ import annotations

from msgspec import Struct

from forensics.analyses.memory.kinds import OF_TENSORS
from forensics.analyses.memory.series import Series
from forensics.analyses.memory.shape import LEVEL

_THUMB = {"staircase": "leak", "slope": "fragmentation"}
_ONE_CURVE = {
    "flat": ("level", "it does not grow"),
    "plateau": ("levelled off", "it rose at first, and not any more"),
    "sawtooth": ("deferred frees", "it builds up and comes back to one floor: reference cycles that gc collects"),
    "spike": ("isolated peaks", "single records need more: a longer batch, an evaluation"),
    "level_shift": ("another phase", "it changed once and stayed: evaluation began, or sequences grew"),
    "unresolved": ("grows, kind unknown", "it rises, but the printed digits or a running maximum hide how"),
    "unknown": ("too short", "there are too few records to judge"),
}


class Reading(Struct, frozen=True):
    """The exact reading in a few words, why, and the rule of thumb for this curve alone (None where it has none)."""

    words: str
    why: str
    thumb: str | None = None


def reading_of(one: Series) -> Reading:
    """Read one series, with the gap between reserved and allocated memory where that is known."""
    kind, thumb = one.form.kind, _THUMB.get(one.form.kind) if one.form.rise > 0 else None
    gap = one.gap_climbs
    if kind in _THUMB and one.form.rise < 0:
        return Reading("falls", "it comes down over the run")
    if one.meaning.is_host:
        words = "host memory grows" if kind in _THUMB else _ONE_CURVE[kind][0]
        return Reading(words, "it rises to the end" if kind in _THUMB else _ONE_CURVE[kind][1], thumb)
    if one.meaning.quantity in OF_TENSORS:
        return _of_tensors(one, thumb, gap=gap)
    return _of_cache(one, thumb, gap=gap)


def _of_cache(one: Series, thumb: str | None, *, gap: bool) -> Reading:
    if gap:
        return Reading("fragmentation", "reserved memory pulls away from what is allocated", thumb)
    if one.form.kind not in _THUMB:
        return Reading(*_ONE_CURVE[one.form.kind])
    if one.gap is not None:
        return Reading("follows allocated", "it grows with what is allocated: see that series", thumb)
    return Reading("leak or fragmentation", "only this curve was logged; log allocated memory beside it", thumb)


def _of_tensors(one: Series, thumb: str | None, *, gap: bool) -> Reading:
    kind = one.form.kind
    if kind in _THUMB:
        leak = "periodic retention" if kind == "staircase" else "per-step retention"
        if gap:
            return Reading(f"{leak} and fragmentation", "allocated memory grows, and so does unused memory", thumb)
        return Reading(leak, "allocated memory itself grows: something is kept", thumb)
    if gap and kind in (*LEVEL, "level_shift"):
        return Reading("fragmentation", "allocated memory is level while what is reserved beside it grows")
    if kind == "spike" and one.gap is not None and one.gap.kind == "level_shift":
        return Reading("one-off peak", "one larger batch left cached segments behind")
    return Reading(*_ONE_CURVE[kind])
