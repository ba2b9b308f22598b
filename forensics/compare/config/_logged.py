"""The learning rate as two runs logged it: from which common step on the curves part."""

from __future__ import annotations

import numpy as np

from forensics.case.curves.loss import Curve, curves
from forensics.case.evidence import metric_evidence
from forensics.model import Evidence, EvidenceRole
from forensics.store.run import Run

#: Curves have parted where they differ by more than this share of the baseline's peak, for a tenth of the steps.
_PARTED, _LASTING = 0.02, 0.1
_FEWEST = 10


def logged_lr(base: Run, cand: Run) -> tuple[Evidence, Evidence, int, float] | None:
    """Give rows of both runs where the rates differ most, the first step that differs, and the ratio of the peaks."""
    first, second = _longest(base), _longest(cand)
    if first is None or second is None:
        return None
    at, mine, theirs = np.intersect1d(_steps(first), _steps(second), return_indices=True)
    if len(at) < _FEWEST:
        return None
    a, b = first.values[mine], second.values[theirs]
    peaks = float(a.max()), float(b.max())
    if min(peaks) <= 0:
        return None
    off = np.abs(a - b) > _PARTED * peaks[0]
    if off.sum() < max(2, _LASTING * len(at)):
        return None
    worst = int(np.argmax(np.abs(a - b)))
    return (
        metric_evidence(first.row(int(mine[worst])), EvidenceRole.RELATED),
        metric_evidence(second.row(int(theirs[worst])), EvidenceRole.PRIMARY),
        int(at[int(off.argmax())]),
        peaks[1] / peaks[0],
    )


def _steps(curve: Curve) -> np.ndarray:
    return curve.at.to_numpy()


def _longest(run: Run) -> Curve | None:
    found = [c for c in curves(run, "lr") if len(c) >= _FEWEST and c.at.null_count() == 0]
    return max(found, key=len, default=None)
