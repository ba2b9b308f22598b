"""The audit of two runs' settings: the differences, ranked by how plausibly they change evaluations.

Keys are brought to one name (`keys.tsv`), values to one spelling; paths of outputs, names, times, hosts and
logging are noise (`noise.tsv`). What was logged counts beside what was configured: the learning rate as printed
is compared step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isclose

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.pace.pauses import Steps
from forensics.case.consumed import consumed
from forensics.case.curves.loss import Curve, curves
from forensics.case.evidence import fact_evidence, metric_evidence
from forensics.compare.config._entries import Entry, entries, shown
from forensics.compare.config._keys import OTHER
from forensics.compare.config._pairs import Pair, effective_batch, pairs, score_of
from forensics.compare.config._shares import Moved, consumed_apart, drift, evidence_of, matched, mixes, moved
from forensics.knowledge.vocabulary import keys_of
from forensics.model import Evidence, EvidenceRole
from forensics.patterns import lazily
from forensics.store.run import Run
from forensics.values import firsts, replace

#: From this weight on a difference is named as a possible cause of other evaluations.
CAUSE = 3.5
_COMMIT = "code.commit"
_HASH = lazily(r"[0-9a-f]{7,64}")
_BATCH = ("batch.size", "batch.accumulation")
#: The mix of data as it was configured and consumed: of what, of a run without a source, the score, and of what apart.
_MIXES = {
    "data.weights": ("share of", "(not in the mix)", 10.0, "the mixes"),
    "data.consumed": ("consumed share of", "(none counted)", 9.9, "what was consumed"),
}
FAMILIES = (
    *("data mix and order", "learning rate and schedule", "batch and tokens", "tokenizer and vocabulary", "model"),
    *("optimizer", "precision", "decoding", "seeds", "code and versions"),
)
#: Curves have parted where they differ by more than this share of the baseline's peak, for a tenth of the steps.
_PARTED, _LASTING = 0.02, 0.1
_FEWEST = 10


class Difference(Struct, frozen=True):
    """One thing that differs: family, name, both values as text, both places, and a score of 0 to 10."""

    name: str
    family: str
    key: str
    base: str
    cand: str
    score: float
    acts_on: str
    base_evidence: Evidence | None
    cand_evidence: Evidence | None
    note: str = ""

    @property
    def what(self) -> str:
        """Its name, of data the source of which the share changed."""
        return self.key if self.name in _MIXES else self.name

    @property
    def is_cause(self) -> bool:
        """Whether it may plausibly change an evaluation."""
        return self.score >= CAUSE


class Audit(Struct, frozen=True):
    """All differences, the most plausible first; settings compared in each run; families that a run did not record.

    `drifts` say where a run consumed another mix of data than it was configured for.
    """

    differences: tuple[Difference, ...]
    base_settings: int
    cand_settings: int
    base_lacks: tuple[str, ...]
    cand_lacks: tuple[str, ...]
    base_drifts: tuple[str, ...] = ()
    cand_drifts: tuple[str, ...] = ()

    @property
    def causes(self) -> tuple[Difference, ...]:
        """The differences that may plausibly change an evaluation."""
        return tuple(d for d in self.differences if d.is_cause)


def audit(base: Run, cand: Run) -> Audit:
    """Compare the recorded settings of two runs."""
    first, second = entries(base), entries(cand)
    hosts = devices(base), devices(cand)
    eaten = consumed(base), consumed(cand)
    found = [d for pair in matched(mixes(first), mixes(second)) for d in _shares("data.weights", moved(*pair))]
    found += [*_shares("data.consumed", consumed_apart(*eaten)), *_settings(first, second, hosts), *_logged(base, cand)]
    ranked = sorted(found, key=lambda d: (-d.score, FAMILIES.index(d.family) if d.family in FAMILIES else 99, d.key))
    drifts = tuple(drift(first, eaten[0])), tuple(drift(second, eaten[1]))
    # the same two values of the same meaning once, however many files say them
    once = tuple(firsts(ranked, lambda d: (d.what, d.base, d.cand)))
    return Audit(once, len(first), len(second), _lacking(first), _lacking(second), *drifts)


def audit_all(bases: Sequence[Run], cand: Run) -> Audit:
    """Compare a candidate with several baselines: a value that it shares with one of them is no difference.

    The values and places are those of the first baseline.
    """
    first, *others = [audit(base, cand) for base in bases]
    for other in others:
        known = {(d.name, d.key) for d in other.differences}
        first = replace(first, differences=tuple(d for d in first.differences if (d.name, d.key) in known))
    return first


def _lacking(every: Sequence[Entry]) -> tuple[str, ...]:
    have = {entry.concept.family for entry in every}
    return tuple(family for family in FAMILIES if family not in have)


def _settings(
    first: Sequence[Entry], second: Sequence[Entry], hosts: tuple[float | None, float | None]
) -> Iterator[Difference]:
    in_mixes = {s.entry.key for every in (first, second) for mix in mixes(every).values() for s in mix.values()}
    batches = effective_batch(first, hosts[0]), effective_batch(second, hosts[1])
    told = False
    for pair in pairs(first, second):
        if pair.entry.key in in_mixes:
            continue
        score, note = score_of(pair, batches)
        told = told or (pair.concept.name in _BATCH and score >= CAUSE)
        if score > 0:
            yield _difference(pair, score, note)
    if not told and batches[0] and batches[1] and not isclose(batches[0], batches[1]):
        yield _batch(first, second, (batches[0], batches[1]))


def _batch(first: Sequence[Entry], second: Sequence[Entry], sizes: tuple[float, float]) -> Difference:
    """A batch that differs although no setting of it does: by the number of devices."""
    one, other = (next((e for e in every if e.concept.name in _BATCH), None) for every in (first, second))
    return Difference(
        name="batch.effective",
        family="batch and tokens",
        key="samples of a step",
        base=shown(sizes[0]),
        cand=shown(sizes[1]),
        score=7.0,
        acts_on="how many samples a step takes",
        base_evidence=_evidence(one, EvidenceRole.RELATED),
        cand_evidence=_evidence(other, EvidenceRole.PRIMARY),
        note="micro batch times accumulation times replicas, which differ in number",
    )


def _difference(pair: Pair, score: float, note: str) -> Difference:
    concept, entry = pair.concept, pair.entry
    is_other = concept is OTHER
    return Difference(
        name=entry.key if is_other else concept.name,
        family=concept.family,
        key=entry.key,
        base=pair.base.shown if pair.base else "(not stated)",
        cand=pair.cand.shown if pair.cand else "(not stated)",
        score=round(score, 2),
        acts_on=concept.acts_on,
        base_evidence=_evidence(pair.base, EvidenceRole.RELATED),
        cand_evidence=_evidence(pair.cand, EvidenceRole.PRIMARY),
        note=note,
    )


def _evidence(entry: Entry | None, role: EvidenceRole) -> Evidence | None:
    return fact_evidence(entry.row, role) if entry is not None else None


def _shares(name: str, found: tuple[Sequence[Moved], float]) -> Iterator[Difference]:
    far, distance = found
    of, without, score, what = _MIXES[name]
    for number, one in enumerate(far):
        yield Difference(
            name=name,
            family="data mix and order",
            key=f"{of} {one.label}",
            base=shown(round(one.base.share, 4)) if one.base else without,
            cand=shown(round(one.cand.share, 4)) if one.cand else without,
            score=score - 0.5 * (number > 0),
            acts_on="what is learned from",
            base_evidence=evidence_of(one.base, EvidenceRole.RELATED),
            cand_evidence=evidence_of(one.cand),
            note=f"total variation distance of {what} {distance:.3g}",
        )


def _logged(base: Run, cand: Run) -> Iterator[Difference]:
    found = logged_lr(base, cand)
    if found is None:
        return
    first, second, parted, ratio = found
    assert first.value is not None
    assert second.value is not None
    yield Difference(
        name="lr.logged",
        family="learning rate and schedule",
        key=f"{second.name} as logged, from step {parted} on",
        base=f"{first.value:.6g}",
        cand=f"{second.value:.6g}",
        score=round(8.0 * min(1.0, 0.5 + abs(ratio - 1)), 2),
        acts_on="the size of the steps",
        base_evidence=first,
        cand_evidence=second,
        note="logged rates count, whatever was configured",
    )


# How to find the commit that made the difference between two runs, where both say theirs.


def bisected(differences: Iterable[Difference]) -> Iterator[str]:
    """Give the command that begins a bisection from a good run (base) to a bad one (cand)."""
    for one in differences:
        if one.name == _COMMIT and _HASH.fullmatch(one.base) and _HASH.fullmatch(one.cand):
            yield f"the code differs: git bisect start {one.cand} {one.base} finds the commit between bad and good"


# How many processes were started, where the settings do not say: by launcher, Slurm or environment.


def devices(run: Run) -> float | None:
    """Processes of a run; None where nothing tells them."""
    rows = run.scan("facts").filter(pl.col("family").is_in(["env", "host"])).select("key", "value").collect()
    found: dict[str, float] = {}
    for key, value in rows.iter_rows():
        name, text = str(key).lower(), str(value).strip('"')
        if text.isdecimal() and len(text) < 8 and int(text):
            found[name] = float(text)
    asked = (keys_of(f"{part}_launched") for part in ("processes", "processes_of_a_node", "nodes"))
    world, each, nodes = (next((found[key] for key in keys if key in found), None) for keys in asked)
    return world if world is not None or each is None else each * (nodes or 1.0)


# The learning rate as two runs logged it: from which common step on the curves part.


def logged_lr(base: Run, cand: Run) -> tuple[Evidence, Evidence, int, float] | None:
    """Give rows of both runs where the rates differ most, the first step that differs, and the ratio of the peaks."""
    both = together(base, cand, "lr")
    if both is None:
        return None
    (first, mine), (second, theirs), at = both
    a, b = first.values[mine], second.values[theirs]
    peaks = float(a.max()), float(b.max())
    if min(peaks) <= 0:
        return None
    off = np.abs(a - b) > _PARTED * peaks[0]
    if off.sum() < max(2, _LASTING * len(at)):
        return None
    worst = int(np.argmax(np.abs(a - b)))
    return (
        metric_evidence(first.row(int(mine[worst])), EvidenceRole.RELATED),
        metric_evidence(second.row(int(theirs[worst])), EvidenceRole.PRIMARY),
        int(at[int(off.argmax())]),
        peaks[1] / peaks[0],
    )


def together(base: Run, cand: Run, name: str) -> tuple[tuple[Curve, Steps], tuple[Curve, Steps], Steps] | None:
    """Give the longest curve of a metric in both runs, the places of its common steps, and these; None of too few."""
    first, second = longest(base, name), longest(cand, name)
    if first is None or second is None:
        return None
    at, mine, theirs = np.intersect1d(first.at.to_numpy(), second.at.to_numpy(), return_indices=True)
    return ((first, mine), (second, theirs), at) if len(at) >= _FEWEST else None


def longest(run: Run, name: str) -> Curve | None:
    """Give the longest curve of a metric that has a step at each of its records; None of fewer than ten records."""
    found = [c for c in curves(run, name) if len(c) >= _FEWEST and c.at.null_count() == 0]
    return max(found, key=len, default=None)
