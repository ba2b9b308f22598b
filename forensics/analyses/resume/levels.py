"""Where the loss is after a restart, between the level at which the run began and the last one before it.

All rules on lost weights and lost steps read this: back at the first level, the weights are lost; still at the last
one, they were restored.
"""

from __future__ import annotations

from math import comb

import polars as pl
from msgspec import Struct

from forensics.analyses.resume.around import Around, mean_error
from forensics.stats.spread import median

#: Values in no order part as the new and the old ones do once in so many times: 3 of 10 do once in 286.
_ODDS = 200
#: Of a short run so many records at least must be the same again, as a median needs three.
_FEWEST = 3


class Levels(Struct, frozen=True):
    """Medians of `count` losses: the first and the last ones of the old life, and the first ones of the new.

    `is_clear`: the fall of the old life is no noise. `is_same`: the new life prints the first losses of the old one
    again, digit for digit.
    """

    first: float
    last: float
    new: float
    count: int
    is_clear: bool
    is_same: bool

    @property
    def back(self) -> float:
        """Share of the way from the last level back to the first one, 0 where the old life did not fall."""
        return (self.new - self.last) / (self.first - self.last) if self.first > self.last else 0.0


def levels(seen: Around, *, records: int, errors: float) -> Levels | None:
    """Compare levels of `records` losses, or of a quarter of a short life; None for a life without two such.

    The fall is clear where it passes `errors` standard errors of the half in which the old life had settled, or where
    all new losses lie above all of that half.
    """
    old, after = pl.concat([seen.before["value"], seen.replaced["value"]]), seen.after["value"]
    shared = min(records, old.len() - 1, after.len())
    begin = old.head(shared)
    if shared >= _FEWEST and begin.equals(after.head(shared)) and begin.n_unique() > 1:
        return Levels(float(old[0]), float(old[-1]), float(after[0]), records, is_clear=True, is_same=True)
    count = min(records, old.len() // 4, after.len())
    if count < _FEWEST - 1:
        return None
    new = after.head(count)
    first, last = initial(seen, count=count), median(old.tail(count))
    clear = first - last > errors * _settled(old, count=count) or _is_above(old, new)
    return Levels(first, last, median(new), count, is_clear=clear, is_same=False)


def initial(seen: Around, *, count: int, skip: int = 0) -> float:
    """The level of a metric when its old life began: the median of `count` of its values after the first `skip`."""
    return median(pl.concat([seen.before["value"], seen.replaced["value"]]).slice(skip, count))


def _is_above(old: pl.Series, new: pl.Series) -> bool:
    """Whether some new values are all above the whole half where the old ones had settled: no noise does that."""
    half = old.tail(old.len() // 2).to_list()
    return comb(len(half) + new.len(), new.len()) >= _ODDS and min(new.to_list()) > max(half)


def _settled(values: pl.Series, *, count: int) -> float:
    """Standard error of the mean of `count` values where a series has settled: in its second half.

    The fall of the first half is no noise; taken for it, a run of a few dozen records could never lose anything.
    """
    return mean_error(values.tail(max(2 * count, values.len() // 2)), count=count)
