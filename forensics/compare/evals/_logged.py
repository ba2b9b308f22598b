"""Evaluation metrics that two runs logged while they trained, compared step by step at the steps that both have.

Both curves are of other seeds or hardware at least, so a difference counts only beyond what two equal runs show: the
differences of the last half of the common steps, their correlation from step to step taken into account (the effective
number of a first-order autoregression), and a floor for what seeds do.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.analyses.evals.results import Row
from forensics.compare.evals._tests import Tested
from forensics.stats.spread import Floats
from forensics.stats.student import t_tail
from forensics.store.run import Run
from forensics.store.schema import TABLES

LOGGED = "logged while training"
_FEWEST = 6
#: What two seeds differ by at the end of training: half a percent of a loss, one point of a share.
_LOSS_FLOOR, _SHARE_FLOOR = 0.005, 0.01


def logged_pairs(base: Run, cand: Run) -> Iterator[tuple[Row, Row, Tested | None]]:
    """Every logged evaluation metric of one name that both runs have at common steps, in the order of names.

    Rows are in the form of `evals`, at the last common step.
    """
    theirs = {curve.name: curve for curve in eval_curves(cand)}
    for mine in eval_curves(base):
        other = theirs.get(mine.name)
        if other is None:
            continue
        steps, left, right = np.intersect1d(mine.steps, other.steps, return_indices=True)
        if len(steps):
            tested = by_steps(mine.values[left], other.values[right], is_share=_is_share(mine, other))
            yield _row(mine, int(left[-1])), _row(other, int(right[-1])), tested


def by_steps(base: Floats, cand: Floats, *, is_share: bool) -> Tested | None:
    """Compare the last half of two curves; None for fewer than six common steps.

    The floor of the error is that of two seeds, and the test has as many degrees of freedom as independent steps.
    """
    if len(base) < _FEWEST:
        return None
    keep = max(_FEWEST // 2, len(base) // 2)
    gaps = (cand - base)[-keep:]
    n = len(gaps)
    sd = float(gaps.std(ddof=1))
    middle = gaps - gaps.mean()
    bend = float((middle[1:] * middle[:-1]).sum() / (middle**2).sum()) if sd > 0 else 0.0
    bend = min(max(bend + 1 / n, 0.0), 0.95)
    effective = max(2.0, n * (1 - bend) / (1 + bend))
    level = float(np.abs(base[-keep:]).mean())
    floor = _SHARE_FLOOR if is_share else _LOSS_FLOOR * level
    se = sqrt(sd * sd / effective + floor * floor)
    if se <= 0:
        return None
    delta = float(gaps.mean())
    # the floor has no uncertainty of its own: the degrees of freedom are those of the measured part (Welch)
    measured = sd * sd / effective
    df = (effective - 1) * (se * se / measured) ** 2 if measured > 0 else 1e6
    return Tested("paired by step", delta, se, min(1.0, 2 * t_tail(abs(delta) / se, max(1.0, df))), None)


def _is_share(*curves: EvalCurve) -> bool:
    return all(c.higher is True and bool((c.values >= 0).all() and (c.values <= 1).all()) for c in curves)


def _row(curve: EvalCurve, index: int) -> dict[str, Any]:
    row = curve.row(index)
    told = {"task": LOGGED, "metric": curve.name, "filter": "none", "step": row["at"], "settings": "{}"}
    stated = {name: row[name] for name in ("source", "line", "byte", "seq", "value")}
    return {**dict.fromkeys(TABLES["evals"]), **stated, **told, "higher_is_better": curve.higher}
