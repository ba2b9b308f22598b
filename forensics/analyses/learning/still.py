"""A training loss that does not move: exactly zero, the same digits again and again, or frozen after a few steps."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.learning.losses import Loss, losses
from forensics.case.curves.loss import Curve, beside
from forensics.case.series import holding, metric_rows
from forensics.knowledge.scores import is_of_positives
from forensics.stats.spread import Floats, behind_last, median_of
from forensics.store.run import Run


class Frozen(Struct, frozen=True):
    """Thresholds of LRN014.

    Of a loss of exactly zero `few` records are enough, as rounding explains it only where gradients flow. A value of
    `telling` significant digits does not repeat by chance: with noise of a hundredth of it, ten thousand values lie
    within reach, so that `repeats` equal ones have odds below one in a billion. With fewer digits, a value of at least
    `least`, and of `digits` decimals or more, needs `records` equal ones; `many` are sure. A loss `stuck` for that many
    records, a third of all or more, at `above` times its best, died after a step too large, unless the last digit of
    its numbers may be the difference; one that is exactly zero for as many, after `few` records above `fallen`, did not
    learn its way there.
    """

    few: int = 3
    repeats: int = 5
    telling: int = 4
    records: int = 20
    many: int = 50
    share: float = 0.98
    least: float = 0.02
    digits: int = 2
    stuck: int = 5
    above: float = 1.2
    fallen: float = 0.1
    rounding: float = 3e-6


#: So many values show how many decimals are printed.
_DECIMALS_OF = 200


class Still(Struct, frozen=True):
    """A loss that has one `value` from the position `start` to its end.

    `how` is `masked` (zero, and no gradient), `frozen` (one value from the first record on), `stuck` (far above its
    best), `froze` (no better than it began) or `vanished` (zero from one record to the next). `idle` is a learning rate
    or gradient norm beside it that is zero throughout. `left` is where it left the lower half of its range for good:
    the onset.
    """

    loss: Loss
    how: str
    value: float
    start: int
    left: int
    idle: Curve | None

    @property
    def count(self) -> int:
        """Records that have the value, up to the end."""
        return len(self.loss.curve) - self.start


def still_of(run: Run, limits: Frozen) -> Still | None:
    """Give the training loss that does not move; None where one of the run's losses does."""
    known = [one for one in losses(run) if len(one.curve) >= limits.few]
    found = [_still(run, one, limits) for one in known]
    if found and all(one is not None and one.how in {"masked", "frozen"} for one in found):
        return max((one for one in found if one is not None), key=lambda one: one.count)
    if found and all(one is not None and one.how in {"masked", "vanished"} for one in found):  # no part that is over
        return next(one for one in found if one is not None and one.how == "vanished")
    return next((one for one in found if one is not None and one.how in {"stuck", "froze"}), None)


def _still(run: Run, loss: Loss, limits: Frozen) -> Still | None:
    values, n = loss.curve.values, len(loss.curve)
    last = float(values[-1])
    if loss.curve.ends_nonfinite:
        return None
    same = np.abs(values - last) <= limits.rounding * abs(last)
    equal = float(same.mean())
    near = (beside(run, loss.curve, name) for name in ("lr", "grad_norm"))
    idle = next((c for c in near if c is not None and not c.values.any() and not c.ends_nonfinite), None)
    if last == 0 and equal >= limits.share:  # a gradient norm that is not zero contradicts that nothing trains
        trains = idle is None and beside(run, loss.curve, "grad_norm") is not None
        return None if trains else Still(loss, "masked", last, 0, 0, idle)
    if equal >= limits.share and n >= _needed(last, limits):
        return Still(loss, "frozen", last, 0, 0, idle)
    return _kept(loss, values, same, limits, idle)


def _kept(loss: Loss, values: Floats, same: NDArray[np.bool_], limits: Frozen, idle: Curve | None) -> Still | None:
    """Judge a loss that had another value before it kept its last one."""
    n, last, start = len(values), float(values[-1]), behind_last(~same)
    low, count = float(values.min()), n - start
    if last == 0:
        at_once = count >= limits.stuck and start >= limits.few and float(values.min()) >= 0  # a signed one passes zero
        at_once = at_once and float(values[start - limits.few : start].min()) > limits.fallen
        return Still(loss, "vanished", last, start, start, idle) if at_once else None
    if count >= max(limits.stuck, n // 3) and low > 0 and last > limits.above * (low + _last_digit(values)):
        return Still(loss, "stuck", last, start, behind_last(values <= (low + last) / 2), idle)
    if not _rounded(last, limits) and last >= float(values[0]) and count >= _needed(last, limits) and 2 * count > n:
        return Still(loss, "froze", last, start, start, idle)
    return None


def _last_digit(values: Floats) -> float:
    """One in the last decimal that any of the values is printed with: what rounding may add to one of them."""
    exponents = (Decimal(repr(float(value))).as_tuple().exponent for value in values[-_DECIMALS_OF:])
    return 10.0 ** min((one for one in exponents if isinstance(one, int)), default=0)


def _needed(value: float, limits: Frozen) -> int:
    """How many equal records tell that a value is frozen."""
    if len(Decimal(repr(value)).normalize().as_tuple().digits) >= limits.telling:
        return limits.repeats
    return limits.records if not _rounded(value, limits) else 1 << 62


def _rounded(value: float, limits: Frozen) -> bool:
    return abs(value) < limits.least or abs(value) == round(abs(value), limits.digits - 1)


# Scores beside the loss, such as an accuracy or an IoU, that never leave the level at which they began.


#: A share of right answers rises by more than this share of itself where anything is learned.
_RISE = 0.1
#: Above this share of its scale a score is no chance.
_CHANCE = 0.5


#: An overlap below this is that of a model that finds nothing of what it looks for.
_NOTHING_FOUND = 0.15


def has_idle_score(run: Run, fewest: int) -> bool:
    """Whether every score of the run that has so many records stayed at its first level, and there is one."""
    known = _scores(run, fewest)
    return bool(known) and all(_is_idle(values) for _, values in known)


def finds_nothing(run: Run, fewest: int) -> bool:
    """Whether all idle scores are of a class that is looked for, as Dice or F1, and next to nothing."""
    known = _scores(run, fewest)
    low = all(is_of_positives(name) and median_of(values) < _NOTHING_FOUND for name, values in known)
    return low and has_idle_score(run, fewest)


def _scores(run: Run, fewest: int) -> list[tuple[str, Floats]]:
    """The scores that have so many records, each of one source and rank, with their names."""
    rows = metric_rows(run, holding(run, "score", "raw_name")).filter(pl.col("value_class") == "finite")
    own = rows.sort("source", "seq").group_by("source", "raw_name", "rank", maintain_order=True).agg("value").collect()
    pairs = zip(own["raw_name"].to_list(), own["value"].to_list(), strict=True)
    return [(name, np.asarray(values, dtype=np.float64)) for name, values in pairs if len(values) >= fewest]


def _is_idle(values: Floats) -> bool:
    third = max(1, len(values) // 3)
    first, last = median_of(values[:third]), median_of(values[-third:])
    scale = 100.0 if values.max() > 1 else 1.0
    return 0 <= last <= first * (1 + _RISE) and first < _CHANCE * scale
