"""The mix of data as it was consumed: against the other run's, and against what the run itself was told to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from forensics.case.consumed import Consumed
from forensics.case.evidence import fact_evidence, metric_evidence
from forensics.compare.config._entries import Entry
from forensics.compare.config._shares import Mix, mixes
from forensics.model import Evidence, EvidenceRole

#: Shares are drawn at random, so a difference below this says nothing.
LEAST = 0.02


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
    far = sorted((label for label in labels if abs(gaps[label]) > LEAST), key=lambda label: -abs(gaps[label]))
    return [Moved(label, base.get(label), cand.get(label), distance) for label in far]


def _share(every: Mapping[str, Consumed], label: str) -> float:
    return every[label].share if label in every else 0.0


def evidence(one: Consumed | None, role: EvidenceRole) -> Evidence | None:
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
        far = [(s, c) for s, c in ((mix[label], one) for label, one in twins.items()) if abs(s.share - c.share) > LEAST]
        for stated, found in sorted(far, key=lambda pair: -abs(pair[0].share - pair[1].share))[:3]:
            places = [fact_evidence(stated.entry.row).place]
            if (seen := evidence(found, EvidenceRole.PRIMARY)) is not None:
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
