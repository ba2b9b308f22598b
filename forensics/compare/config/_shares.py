"""Shares of a data mix, normalised to one: 7 to 3 is 0.7 to 0.3; a change is a change of shares, not of spelling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from forensics.compare.config._entries import Entry
from forensics.compare.config._values import Value
from forensics.patterns import lazily

#: Changes of a share that are below this are rounding.
LEAST = 0.005
_MOST_CHARS = 4000
_SPELLED = lazily(r"([\w./-]{1,200})[=:*](\d{1,9}(?:\.\d{1,12})?)")
_NAMED = lazily(r"^(.*?)\.?\[([^\]]*)\]\.?[^.]*$")


class Share(Struct, frozen=True):
    """The share of one source of data, out of 1, and the setting that says it."""

    label: str
    share: float
    entry: Entry


Mix = Mapping[str, Share]


class Changed(Struct, frozen=True):
    """One source of data whose share differs; None where a run does not have it."""

    label: str
    base: Share | None
    cand: Share | None

    @property
    def change(self) -> float:
        """Candidate less baseline."""
        return (self.cand.share if self.cand else 0.0) - (self.base.share if self.base else 0.0)


def mixes(every: Sequence[Entry]) -> dict[str, Mix]:
    """Every mix of two sources or more, by where it stands; the first that says a share is taken."""
    groups: dict[str, dict[str, tuple[float, Entry]]] = {}
    for entry in every:
        for parent, label, weight in _weights(entry):
            groups.setdefault(parent, {}).setdefault(label, (weight, entry))
    found: dict[str, Mix] = {}
    for parent, members in groups.items():
        total = sum(weight for weight, _ in members.values())
        if len(members) > 1 and 0 < total < float("inf"):
            found[parent] = {n: Share(n, w / total, e) for n, (w, e) in members.items()}
    return found


def _weights(entry: Entry) -> list[tuple[str, str, float]]:
    value = entry.value
    if isinstance(value, str) and entry.concept.name == "data.sources":
        return _spelled(entry.key, value)
    if isinstance(value, tuple):
        return _blend(entry.key, value) if entry.concept.name == "data.sources" else _in_order(entry, value)
    if entry.concept.kind != "share" or not isinstance(value, float) or not value >= 0:
        return []
    if named := _NAMED.match(entry.key):
        return [(named[1], named[2], value)]
    parent, _, last = entry.key.rpartition(".")
    outer = parent.rpartition(".")
    if re.fullmatch(r"weight|ratio|prob|probability|proportion|fraction|share", last) and outer[2]:
        return [(outer[0], outer[2], value)]
    return [(parent, last, value)] if parent else []


def _in_order(entry: Entry, value: tuple[Value, ...]) -> list[tuple[str, str, float]]:
    numbers = [v for v in value if isinstance(v, float) and v >= 0]
    if entry.concept.kind != "share" or len(numbers) != len(value):
        return []
    return [(entry.key, f"no. {n}", v) for n, v in enumerate(numbers)]


def _spelled(key: str, text: str) -> list[tuple[str, str, float]]:
    """`web=0.6,code=0.4` or `web:6;code:4`, as command lines take it."""
    parts = [_SPELLED.fullmatch(part.strip()) for part in re.split(r"[,;]", text[:_MOST_CHARS])]
    if len(parts) < 2 or not all(parts):
        return []
    return [(key, part[1].lower(), float(part[2])) for part in parts if part]


def _blend(key: str, value: tuple[Value, ...]) -> list[tuple[str, str, float]]:
    """`0.3 web 0.7 code`, as Megatron takes it."""
    if len(value) < 2 or len(value) % 2:
        return []
    weights, names = value[::2], value[1::2]
    if not all(isinstance(w, float) and w >= 0 for w in weights) or not all(isinstance(n, str) for n in names):
        return []
    return [(key, str(n), w) for w, n in zip(weights, names, strict=True) if isinstance(w, float)]


def matched(base: Mapping[str, Mix], cand: Mapping[str, Mix]) -> list[tuple[Mix, Mix]]:
    """Pairs of mixes that stand for the same: at the same place, else with the same sources, else the only ones."""
    pairs = [(base[p], cand[p]) for p in base if p in cand]
    left, right = [base[p] for p in base if p not in cand], [cand[p] for p in cand if p not in base]
    for one in left:
        fitting = [other for other in right if set(other) == set(one)]
        if not fitting and len(left) == len(right) == 1:
            fitting = [other for other in right if set(other) & set(one)]
        if fitting:
            pairs.append((one, fitting[0]))
    return pairs


def changed(base: Mix, cand: Mix) -> list[Changed]:
    """Sources whose share differs by more than `LEAST`, the largest change first."""
    found = [Changed(label, base.get(label), cand.get(label)) for label in dict.fromkeys((*base, *cand))]
    return sorted((c for c in found if abs(c.change) > LEAST), key=lambda c: -abs(c.change))


def variation(base: Mix, cand: Mix) -> float:
    """Total variation distance of two mixes: 0 for equal ones, 1 for disjoint ones."""
    labels = set(base) | set(cand)
    return 0.5 * sum(abs(Changed(n, base.get(n), cand.get(n)).change) for n in labels)
