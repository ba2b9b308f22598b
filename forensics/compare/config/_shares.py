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


# The mix of data as it was consumed: against the other run's, and against what the run itself was told to take.


class Moved(Struct, frozen=True):
    """One source of data whose consumed share differs between two runs; None where a run counts none of it."""

    label: str
    base: Consumed | None
    cand: Consumed | None
    distance: float


def moved(base: Mapping[str, Consumed], cand: Mapping[str, Consumed]) -> list[Moved]:
    """Sources whose consumed share differs, the largest change first; nothing where a run counted none."""
    if not base or not cand or not set(base) & set(cand):
        return []
    labels = list(dict.fromkeys((*base, *cand)))
    gaps = {label: _share(cand, label) - _share(base, label) for label in labels}
    distance = 0.5 * sum(abs(gap) for gap in gaps.values())
    far = sorted((label for label in labels if abs(gaps[label]) > _LEAST_CONSUMED), key=lambda label: -abs(gaps[label]))
    return [Moved(label, base.get(label), cand.get(label), distance) for label in far]


def _share(every: Mapping[str, Consumed], label: str) -> float:
    return every[label].share if label in every else 0.0


def consumed_evidence(one: Consumed | None, role: EvidenceRole) -> Evidence | None:
    """Evidence of a consumed share: the last count that was logged, or the share that was printed."""
    if one is None:
        return None
    return metric_evidence(one.row, role) if one.table == "metrics" else fact_evidence(one.row, role)


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
            places = [fact_evidence(stated.entry.row).place]
            if (seen := consumed_evidence(found, EvidenceRole.PRIMARY)) is not None:
                places.append(seen.place)
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
