"""Fewer points with the same outline: smallest and largest of each bucket, and every place that is not finite.

Of too many bars those around the one that matters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forensics.figure import Curve, Gap
from forensics.stats.spread import Floats
from forensics.values import replace

#: So many points a figure shows at most, over all of its curves; more are finer than a pixel.
MOST_POINTS = 2400
#: Stretches of non-finite records beyond so many are joined with their nearest neighbours.
MOST_GAPS = 200
MOST_BARS = 40
#: Name of what is put together; no category is called so.
REST = "the rest"
_WORDS = {"nan": "NaN", "+inf": "+inf", "-inf": "-inf"}


def thinned(label: str, x: Floats, y: Floats, most: int) -> Curve:
    """Give a series as a curve of at most about `most` points; x in any order is taken as it is.

    The finite points are cut into buckets of equal count, of which the smallest and the largest value stay, beside the
    first and the last point. Records that are not finite become gaps; none is dropped.
    """
    good = np.isfinite(y) & np.isfinite(x)
    index = np.flatnonzero(good)
    keep = index if len(index) <= most else index[_extremes(y[index], most)]
    return Curve(
        label,
        tuple(float(v) for v in x[keep]),
        tuple(float(v) for v in y[keep]),
        _gaps(x, y, np.isfinite(x) & ~np.isfinite(y)),
        records=len(y),
    )


def shrunk(curve: Curve, most: int) -> Curve:
    """Give a curve that was thinned already with fewer points, chosen in the same way; its gaps stay."""
    if len(curve.x) <= most:
        return curve
    keep = [int(i) for i in _extremes(np.array(curve.y, np.float64), most)]
    return replace(curve, x=tuple(curve.x[i] for i in keep), y=tuple(curve.y[i] for i in keep))


def note_of(curves: tuple[Curve, ...]) -> str:
    """Say how many points are drawn of how many records."""
    drawn, records = sum(len(c.x) for c in curves), sum(c.records for c in curves)
    finite = records - sum(g.records for c in curves for g in c.gaps)
    if drawn >= finite:
        return f"every one of {records:,} records is drawn"
    return (
        f"{drawn:,} of {finite:,} finite records are drawn: the smallest and the largest of each bucket; "
        "every non-finite record is marked"
    )


def _extremes(y: Floats, most: int) -> npt.NDArray[np.int64]:
    edges = np.linspace(0, len(y), max(1, most // 2 - 1) + 1).astype(np.int64)[:-1]
    ends = np.append(edges[1:], len(y))
    kept = {0, len(y) - 1}
    for a, b in zip(edges.tolist(), ends.tolist(), strict=True):
        part = y[a:b]
        kept |= {a + int(part.argmin()), a + int(part.argmax())}
    return np.array(sorted(kept), np.int64)


def _gaps(x: Floats, y: Floats, bad: npt.NDArray[np.bool_]) -> tuple[Gap, ...]:
    where = np.flatnonzero(bad)
    if not len(where):
        return ()
    cuts = np.flatnonzero(np.diff(where) > 1) + 1
    if len(cuts) >= MOST_GAPS:  # the widest spaces between stretches stay
        wide = np.argsort(-np.diff(where)[cuts - 1], kind="stable")[: MOST_GAPS - 1]
        cuts = np.sort(cuts[wide])
    return tuple(
        Gap(float(x[part].min()), float(x[part].max()), _word(y[part]), len(part)) for part in np.split(where, cuts)
    )


def _word(values: Floats) -> str:
    kinds = {"nan" if np.isnan(v) else "+inf" if v > 0 else "-inf" for v in values[:1000]}
    return ", ".join(_WORDS[k] for k in sorted(kinds))


def window(at: int, count: int) -> tuple[int, int]:
    """Give the first place and the one behind the last of the bars around place `at`."""
    first = max(0, min(at - MOST_BARS // 2, count - MOST_BARS))
    return first, min(count, first + MOST_BARS)


def window_note(shown: int, count: int) -> str:
    """Say that not all steps are drawn; nothing where they are."""
    return f"{shown} of {count:,} steps, around the one that took longest" if shown < count else ""
