"""The rank that an exception's own words set apart: a value of each rank, of which one differs, or one against many."""

from __future__ import annotations

import math

from forensics.case.rank_spans import listed
from forensics.patterns import lazily
from forensics.stats.spread import median_of

#: A value of a rank: `rank   2 = 3.90211111`, `rank 5: 0.8`; a text without a decimal point is another number.
_NUMBER = r"[-+]?\d+\.\d+(?:e[-+]?\d+)?|nan|[-+]?inf(?:inity)?"
_VALUE = lazily(rf"(?i)\branks?[ _]{{0,4}}(\d{{1,6}})\s{{0,4}}[=:]\s{{0,4}}({_NUMBER})\b")
#: One rank, and several: `rank 6 has checksum 91aa where ranks 0-5,7 have 55c0`.
_ONE, _MANY = lazily(r"(?i)\brank (\d{1,6})\b(?!\s*[=:-])"), lazily(r"(?i)\branks (\d[\d, -]{0,400}\d)")
_FEWEST = 3
#: Values that ranks have in common differ by no more than this share, as sums in another order do.
_ALIKE = 1e-3
#: The odd one is apart by so many times more.
_APART = 10.0


def odd_rank(text: str) -> int | None:
    """Give the rank whose value is apart from those of all others, or that a sentence sets against the others."""
    if "rank" not in text.lower():
        return None
    values = {int(rank): float(value) for rank, value in _VALUE.findall(text)}
    if len(values) >= _FEWEST:
        return _apart(values)
    one = {int(rank) for rank in _ONE.findall(text)}
    many = {rank for span in _MANY.findall(text) for rank in listed(span.replace(" ", ""))}
    everyone = one | many
    is_whole = everyone == set(range(len(everyone)))  # a tensor has a rank, too
    return one.pop() if len(one) == 1 and len(many) > 1 and many.isdisjoint(one) and is_whole else None


def _apart(values: dict[int, float]) -> int | None:
    bad = [rank for rank, value in values.items() if not math.isfinite(value)]
    if bad:
        return bad[0] if len(bad) == 1 else None
    middle = median_of([*values.values()])
    far = {rank: abs(value - middle) for rank, value in values.items()}
    worst = max(far, key=far.__getitem__)
    others = max(off for rank, off in far.items() if rank != worst)
    near = max(others, _ALIKE * abs(middle))
    return worst if far[worst] > _APART * near else None
