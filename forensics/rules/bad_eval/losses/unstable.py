"""An evaluation loss that leaps between evaluations while training is calm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Findings, Run, Struct, number, onset_at, proof, rule
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, quantiles_of


class Unstable(Struct, frozen=True):
    """Thresholds of EVL030.

    Of `evaluations` or more, the last `late` share is judged. One leaps that is `times` the level of the lower half and
    gives back `lost` of what those before had gained; there are `leaps`, each by itself or few in a row, and they are
    `share` to `most` of all. Seeds of one model differ by 1 to 5 % (Dodge et al. 2020). Leaps that are all within
    `alike` times the lowest are evaluations of another set under the same name. A training is calm of whose losses nine
    in ten are within `calm` times the running median of `near`.
    """

    evaluations: int = 15
    late: float = 2 / 3
    times: float = 2.0
    lost: float = 0.25
    leaps: int = 4
    share: float = 0.1
    most: float = 0.5
    alike: float = 1.5
    calm: float = 1.3
    near: int = 9


@rule("EVL030 eval-loss-unstable", "metrics", severity="warning", confidence="medium", cause="eval_unstable")
def eval_unstable(run: Run, cfg: Unstable) -> Findings:
    """Find the first evaluation loss that leaps and comes back again and again."""
    if reinforced(run) or not any(_is_calm(one, cfg) for one in curves(run, "loss")):
        return
    for curve in curves(run, "eval_loss"):
        leaps = _leaps(curve.values, cfg)
        if leaps is None:
            continue
        first, worst = int(leaps[0]), int(max(leaps, key=lambda at: curve.values[at]))
        level = float(quantiles_of(_late(curve.values, cfg), [0.25])[0])
        yield eval_unstable.finding(
            f"{curve.raw_name} leaps from {number(level)} to {number(float(curve.values[worst]))} and back"
            f" in {len(leaps)} of {len(_late(curve.values, cfg))} evaluations, and the training loss does not",
            f"each is {cfg.times:g} times the usual level or more, and the next ones are back at it",
            proof(curve.row(first), curve.row(worst)),
            onset_at(curve.row(first), curve.step(first - 1)),
            numbers={"level": level, "highest": float(curve.values[worst]), "leaps": len(leaps)},
        )
        return


def _late(values: Floats, cfg: Unstable) -> Floats:
    return values[len(values) - int(cfg.late * len(values)) :]


def _is_calm(training: Curve, cfg: Unstable) -> bool:
    """Whether a training loss keeps near its own level in its last records."""
    values = _late(training.values, cfg)
    if len(values) < cfg.evaluations or training.ends_nonfinite or values.min() <= 0:
        return False
    apart = values / np.maximum(centred_median(values, cfg.near), 1e-12)
    return float(quantiles_of(apart, [0.9])[0]) <= cfg.calm


def _leaps(values: Floats, cfg: Unstable) -> NDArray[np.intp] | None:
    """The places of the evaluations that leap; None where they are too few, too many, or do not come back."""
    late = _late(values, cfg)
    if len(values) < cfg.evaluations or values.min() <= 0:
        return None
    level, begin = (float(quantiles_of(part, [0.25])[0]) for part in (late, values[: len(values) - len(late)]))
    bound = max(cfg.times * level, level + cfg.lost * max(0.0, begin - level))
    above = late > bound
    times = int(np.count_nonzero(np.diff(above.astype(np.int8), prepend=0) == 1))
    back = int(np.count_nonzero(np.diff(above.astype(np.int8)) == -1))
    if min(times, back) < cfg.leaps or not cfg.share <= above.mean() <= cfg.most:
        return None
    if late[above].max() <= cfg.alike * late[above].min():
        return None
    return np.flatnonzero(above) + (len(values) - len(late))
