"""Pairs of settings of two runs: the matching of names, the differences, and their weight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from forensics.compare.config._entries import Entry
from forensics.compare.config._keys import OTHER, Concept
from forensics.compare.config.values import Value, distance, off, same
from forensics.knowledge.vocabulary import keys_of, stands_for

#: Meanings that a run has once, whatever the key: another name in the other run still matches it.
_SINGLE = frozenset(
    {"lr.peak", "lr.schedule", "lr.min", "lr.warmup", "optimizer.kind", "optimizer.weight_decay", "optimizer.clip"}
    | {"batch.accumulation", "batch.sequence", "seed", "code.commit", "data.epochs", "tokenizer.identity", "budget"}
)

#: Settings of one meaning among which another name is looked for; a run has a few.
_MOST_ALIKE = 200
#: A number that doubles has the whole weight, one that hardly changes this share of it.
_SMALL = 0.4
_DEFAULT = 0.5
_SAME_BATCH = 0.3
_PATCH = 0.5
_PARTS = ("global", "micro", "accumulation", "devices", "replicas", "nodes", "tensor", "pipeline", "context")


class Pair(Struct, frozen=True):
    """A setting that differs; one side is None where only the other run states it."""

    base: Entry | None
    cand: Entry | None

    @property
    def entry(self) -> Entry:
        """The candidate's, else the baseline's."""
        found = self.cand or self.base
        assert found is not None
        return found

    @property
    def concept(self) -> Concept:
        return self.entry.concept


Table = dict[str, list[Entry]]


class _Side(Struct, frozen=True):
    """One run: its settings by key and by meaning, and the forms of its files."""

    table: Table
    by_meaning: Table
    forms: frozenset[tuple[str, str]]


def pairs(base: Sequence[Entry], cand: Sequence[Entry]) -> Iterator[Pair]:
    """Settings that both runs state differently, and those that one of two like files lacks."""
    first, second = _side(base), _side(cand)
    for key in dict.fromkeys((*first.table, *second.table)):
        if key in first.table and key in second.table:
            found = _differing(first.table[key], second.table[key])
            if found is not None:
                yield found
    yield from _one_sided(first, second)


def _side(every: Sequence[Entry]) -> _Side:
    table: Table = {}
    by_meaning: Table = {}
    for entry in every:
        table.setdefault(entry.key, []).append(entry)
        if entry.concept is not OTHER and len(by_meaning.get(entry.concept.name, ())) < _MOST_ALIKE:
            by_meaning.setdefault(entry.concept.name, []).append(entry)
    return _Side(table, by_meaning, frozenset(_form(e) for e in every))


def _differing(a: list[Entry], b: list[Entry]) -> Pair | None:
    """Give the first pair from files of the same name that differs; without such files, any two unless some agree."""
    like = [(x, y) for x in a for y in b if _file(x) == _file(y)]
    if like:
        for x in dict.fromkeys(_file(x) for x, _ in like):
            mine, theirs = [e for e in a if _file(e) == x], [e for e in b if _file(e) == x]
            # of several values in one file the last one counts, as a resumed run prints its settings again
            if not same(mine[-1].value, theirs[-1].value):
                return Pair(mine[-1], theirs[-1])
        return None
    return None if any(same(x.value, y.value) for x in a for y in b) else Pair(a[-1], b[-1])


def _file(entry: Entry) -> str:
    return str(entry.row["source"]).rsplit("/", 1)[-1]


def _form(entry: Entry) -> tuple[str, str]:
    name = _file(entry)
    return str(entry.row["family"]), name.rsplit(".", 1)[-1] if "." in name else name


def _one_sided(first: _Side, second: _Side) -> Iterator[Pair]:
    """Settings whose key only one run has: under another key of the same meaning, or not at all."""
    free = {key for key in second.table if key not in first.table}
    for key, mine in first.table.items():
        if key in second.table:
            continue
        other = _stands_for(mine[-1], second, free)
        if isinstance(other, Entry):
            free.discard(other.key)
            yield Pair(mine[-1], other)
        elif other is None:
            yield from _alone(mine[-1], second, is_base=True)
    for key in [key for key in second.table if key in free]:
        if _stands_for(second.table[key][-1], first, set()) is None:
            yield from _alone(second.table[key][-1], first, is_base=False)


def _stands_for(entry: Entry, others: _Side, free: set[str]) -> Entry | bool | None:
    """True where the other run says the same elsewhere; the entry it replaces where it says another value."""
    alike = [e for e in others.by_meaning.get(entry.concept.name, ()) if _is_same_meaning(entry, e)]
    if any(same(entry.value, e.value) for e in alike):
        return True
    fitting = [e for e in alike if e.key in free]
    closest = [e for e in fitting if e.leaf == entry.leaf]
    if closest:
        return closest[0]
    return fitting[0] if len({e.key for e in fitting}) == 1 else None


def _is_same_meaning(a: Entry, b: Entry) -> bool:
    if a.concept.name != b.concept.name or a.concept is OTHER:
        return False
    return a.leaf == b.leaf or a.concept.name in _SINGLE


def _alone(entry: Entry, others: _Side, *, is_base: bool) -> Iterator[Pair]:
    """A setting that only one run states, where the other run has a file of the same form and leaves it out."""
    if not off(entry.value) and _form(entry) in others.forms:
        yield Pair(entry, None) if is_base else Pair(None, entry)


# How plausibly a difference changes evaluations: the weight of its meaning, less for small changes and defaults.


def score_of(pair: Pair, batches: tuple[float | None, float | None]) -> tuple[float, str]:
    """Give 0 to 10, and the reason for less, if any."""
    concept = pair.concept
    score, note = concept.weight, ""
    if pair.base is None or pair.cand is None:
        if "[" in pair.entry.key and concept.name.startswith("data."):
            return score, "a source of data that only one run has"
        return score * _DEFAULT, "the other run does not state it; its default may be the same"
    if concept.kind == "version":
        score, note = _of_version(score, pair.base.value, pair.cand.value)
    elif concept.kind == "number":
        ratio = distance(pair.base.value, pair.cand.value)
        score *= 1.0 if ratio is None else min(1.0, _SMALL + (1 - _SMALL) * ratio / math.log(2))
    same_batch = batches[0] and batches[0] == batches[1]
    if (
        concept.name in ("batch.size", "batch.accumulation")
        and same_batch
        and not stands_for("whole_batch_setting", pair.entry.leaf)
    ):
        return score * _SAME_BATCH, f"the batch of a step is {batches[0]:g} samples in both runs"
    return score, note


def _of_version(score: float, base: Value, cand: Value) -> tuple[float, str]:
    first, second = str(base).split("+")[0].split("."), str(cand).split("+")[0].split(".")
    if first == second:
        return score * _PATCH, "the same version, built otherwise"
    return (score * _PATCH, "only the patch level differs") if first[:2] == second[:2] else (score, "")


def effective_batch(every: Sequence[Entry], launched: float | None = None) -> float | None:
    """Samples of a step: as stated, else micro batch times accumulation times replicas; None where not known.

    Replicas are the devices, as the settings or else the launcher says (`launched`), over the degrees of tensor,
    pipeline and context parallelism.
    """
    leaves = {part: keys_of(f"batch_{part}_setting") for part in _PARTS}
    known = {part: found for part, keys in leaves.items() if (found := _stated(every, keys)) is not None}
    if "global" in known:
        return known["global"][0]
    if "micro" not in known:
        return None
    micro = known["micro"][0] * known.get("accumulation", (1.0, ""))[0]
    if "replicas" in known:
        return micro * known["replicas"][0]
    devices, leaf = known.get("devices", (launched or 1.0, "world_size"))
    if leaf not in keys_of("processes_setting"):
        devices *= known.get("nodes", (1.0, ""))[0]
    split = math.prod(known.get(what, (1.0, ""))[0] for what in ("tensor", "pipeline", "context"))
    replicas = devices / split if devices % split == 0 else devices
    return micro * replicas


def _stated(every: Sequence[Entry], leaves: Sequence[str]) -> tuple[float, str] | None:
    """The one positive number that a run states under the first of some leaves, alone or as a list of one."""
    for leaf in leaves:
        values = (
            e.value[0] if isinstance(e.value, tuple) and len(e.value) == 1 else e.value for e in every if e.leaf == leaf
        )
        stated = {v for v in values if isinstance(v, float) and v > 0}
        if len(stated) == 1:
            return stated.pop(), leaf
    return None
