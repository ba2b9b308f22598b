"""How plausibly a difference changes evaluations: the weight of its meaning, less for small changes and defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from forensics.compare._config_entries import Entry
from forensics.compare._config_pair import Pair
from forensics.compare._config_values import Value, distance

#: A number that doubles has the whole weight, one that hardly changes this share of it.
_SMALL = 0.4
_DEFAULT = 0.5
_SAME_BATCH = 0.3
_PATCH = 0.5
_MICRO = re.compile(r"micro|per_device|per_gpu|accum|^mbs$|device_batch")
_LEAVES = {
    "global": ("global_batch_size", "global_train_batch_size", "train_batch_size", "gbs"),
    "micro": (
        *("micro_batch_size", "per_device_train_batch_size", "train_micro_batch_size_per_gpu", "device_batch_size"),
        *("batch_size", "mbs"),
    ),
    "accumulation": ("gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches", "grad_accum"),
    "devices": ("world_size", "num_gpus", "n_gpus", "nproc_per_node", "num_processes", "devices"),
}


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
    if concept.name.startswith("batch.") and _MICRO.search(pair.entry.leaf) and batches[0] and batches[0] == batches[1]:
        return score * _SAME_BATCH, f"the batch of a step is {batches[0]:g} samples in both runs"
    return score, note


def _of_version(score: float, base: Value, cand: Value) -> tuple[float, str]:
    first, second = str(base).split("+")[0].split("."), str(cand).split("+")[0].split(".")
    if first == second:
        return score * _PATCH, "the same version, built otherwise"
    return (score * _PATCH, "only the patch level differs") if first[:2] == second[:2] else (score, "")


def effective_batch(every: Sequence[Entry]) -> float | None:
    """Samples of a step: as stated, else micro batch times accumulation times devices; None where not known."""
    known: dict[str, float] = {}
    for what, leaves in _LEAVES.items():
        for leaf in leaves:
            stated = {e.value for e in every if e.leaf == leaf and isinstance(e.value, float) and e.value > 0}
            if len(stated) == 1:
                known[what] = stated.pop()
                break
    if "global" in known:
        return known["global"]
    if "micro" not in known:
        return None
    return known["micro"] * known.get("accumulation", 1.0) * known.get("devices", 1.0)
