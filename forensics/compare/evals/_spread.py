"""One result against those of several baselines: the spread between equal runs is part of the error."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

from forensics.compare.evals._tests import Tested
from forensics.stats.student import t_tail

#: Degrees of freedom of what is believed of the spread before it is measured (as in `_spread`).
_PRIOR_DF = 4.0


def against_spread(found: Sequence[tuple[float, Tested]], value: float) -> Tested:
    """Judge a value against those of two baselines or more, by a moderated t (Smyth 2004).

    The variance between baselines is mixed with the one that their tests state; the candidate is one more draw.
    """
    k = len(found)
    values = [base for base, _ in found]
    stated = fmean(tested.se**2 for _, tested in found) / 2
    df = _PRIOR_DF + k - 1
    moderated = (_PRIOR_DF * stated + (k - 1) * variance(values)) / df
    se = sqrt(moderated * (1 + 1 / k))
    delta = value - fmean(values)
    p = 1.0 if delta == 0 else 0.0 if se == 0 else min(1.0, 2 * t_tail(abs(delta) / se, df))
    return Tested(f"against the spread of {k} baselines", delta, se, p, found[0][1].n)
