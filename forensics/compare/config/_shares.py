"""Shares of a data mix, normalised to one: 7 to 3 is 0.7 to 0.3; a change is a change of shares, not of spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from forensics.case.consumed import Consumed
from forensics.case.evidence import fact_evidence, metric_evidence
from forensics.compare.config._entries import Entry
from forensics.compare.config.values import Value
from forensics.model import Evidence, EvidenceRole
from forensics.patterns import lazily

#: Shares are drawn at random, so a difference below this says nothing.
_LEAST_CONSUMED = 0.02
#: Changes of a configured share that are below this are rounding.
_LEAST = 0.005
_MOST_CHARS = 4000
_SPELLED = lazily(r"([\w./-]{1,200})[=:*](\d{1,9}(?:\.\d{1,12})?)")
_NAMED = lazily(r"^(.*?)\.?\[([^\]]*)\]\.?[^.]*$")


class Share(Struct, frozen=True):
    """The share of one source of data, out of 1, and the setting that says it."""

    label: str
    share: float
    entry: Entry


Mix = Mapping[str, Share]


class Moved(Struct, frozen=True):
    """One source of data whose share differs, as configured or as consumed; None where a run has nothing of it."""

    label: str
    base: Share | Consumed | None
    cand: Share | Consumed | None

    @property
    def change(self) -> float:
        """Candidate less baseline."""
        return (self.cand.share if self.cand else 0.0) - (self.base.share if self.base else 0.0)


def mixes(every: Sequence[Entry]) -> dict[str, Mix]:
    """Every mix of two sources or more, by its place; the first that says a share is taken."""
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
    """Pairs of mixes that mean the same: at the same place, else with the same sources, else the only ones."""
    pairs = [(base[p], cand[p]) for p in base if p in cand]
    left, right = [base[p] for p in base if p not in cand], [cand[p] for p in cand if p not in base]
    for one in left:
        fitting = [other for other in right if set(other) == set(one)]
        if not fitting and len(left) == len(right) == 1:
            fitting = [other for other in right if set(other) & set(one)]
        if fitting:
            pairs.append((one, fitting[0]))
    return pairs


def moved(
    base: Mapping[str, Share | Consumed], cand: Mapping[str, Share | Consumed], least: float = _LEAST
) -> tuple[list[Moved], float]:
    """Sources whose share differs by more than `least`, the largest change first, and the total variation distance."""
    every = [Moved(label, base.get(label), cand.get(label)) for label in dict.fromkeys((*base, *cand))]
    far = sorted((one for one in every if abs(one.change) > least), key=lambda one: -abs(one.change))
    return far, 0.5 * sum(abs(one.change) for one in every)


def consumed_apart(base: Mapping[str, Consumed], cand: Mapping[str, Consumed]) -> tuple[list[Moved], float]:
    """The same for consumed data; nothing without a source that both runs counted."""
    return moved(base, cand, _LEAST_CONSUMED) if set(base) & set(cand) else ([], 0.0)


def evidence_of(one: Share | Consumed | None, role: EvidenceRole = EvidenceRole.PRIMARY) -> Evidence | None:
    """The setting of a share, the last count that was logged, or the share that was printed."""
    if isinstance(one, Consumed) and one.table == "metrics":
        return metric_evidence(one.row, role)
    return None if one is None else fact_evidence(one.row if isinstance(one, Consumed) else one.entry.row, role)


# Consumed shares of data against the configured ones.


def drift(every: Sequence[Entry], eaten: Mapping[str, Consumed]) -> Iterator[str]:
    """Say where a run consumed another mix than it was configured for, with both places."""
    for mix in mixes(every).values():
        twins = _twins(mix, eaten)
        if len(twins) < len(mix):
            continue
        far = [
            (s, c)
            for s, c in ((mix[label], one) for label, one in twins.items())
            if abs(s.share - c.share) > _LEAST_CONSUMED
        ]
        for stated, found in sorted(far, key=lambda pair: -abs(pair[0].share - pair[1].share))[:3]:
            places = [one.place for part in (stated, found) if (one := evidence_of(part)) is not None]
            shares = f"was to be {stated.share:.3g} of the data and was {found.share:.3g}"
            yield f"{found.label} {shares} ({'; '.join(places)})"
        return


def _twins(mix: Mix, eaten: Mapping[str, Consumed]) -> dict[str, Consumed]:
    """For each source of a configured mix the counted one of that name, or at that place in the order of a blend."""
    found: dict[str, Consumed] = {}
    for place, label in enumerate(mix):
        plain = _plain(label)
        one = next((c for name, c in eaten.items() if _plain(name) == plain), None)
        one = one or eaten.get(f"dataset {place}")
        if one is not None:
            found[label] = one
    return found


def _plain(label: str) -> str:
    return (
        label.rsplit("/", 1)[-1]
        .lower()
        .replace("-", "_")
        .replace(".", "_")
        .removesuffix("_text_document")
        .removesuffix("_text")
    )
