"""How plausibly a difference changes evaluations: the weight of its meaning, less for small changes and defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forensics.compare.config._entries import Entry
from forensics.compare.config._pairs import Pair
from forensics.compare.config.values import Value, distance
from forensics.knowledge.vocabulary import keys_of, stands_for

#: A number that doubles has the whole weight, one that hardly changes this share of it.
_SMALL = 0.4
_DEFAULT = 0.5
_SAME_BATCH = 0.3
_PATCH = 0.5
_PARTS = ("global", "micro", "accumulation", "devices", "replicas", "nodes", "tensor", "pipeline", "context")


def score_of(pair: Pair, batches: tuple[float | None, float | None]) -> tuple[float, str]:
    """Give 0 to 10, and what speaks for less where something does."""
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
