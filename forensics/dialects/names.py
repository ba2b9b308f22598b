"""Canonical metric names: which printed names mean the same quantity, and the factor to the unit in the name.

The table is data (`names.tsv`: printed name, canonical name, scale), with the source of each row; this module reads it.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.dialects.spec import Name
from forensics.dialects.tables import rows

#: `gpu.3.memory.used`, `gpu/3/power`, `system/gpu_3_power_usage_watts`: the device is no part of the quantity.
_BETWEEN = re.compile(r"[\s/._-]+")
_DEVICE = re.compile(r"(?:system[./])?gpu[._/]\d{1,3}[._/]")


@cache
def table() -> dict[str, Name]:
    """Printed name (lower case) → canonical name and scale."""
    return {printed.lower(): Name(known, float(scale)) for printed, known, scale, *_ in rows("names.tsv")}


@cache
def _by_words() -> dict[str, Name]:
    """The table by the words of its names, whatever stands between them; where these mean two things, neither."""
    found: dict[str, set[Name]] = {}
    for printed, name in table().items():
        found.setdefault(_BETWEEN.sub("_", printed).strip("_"), set()).add(name)
    return {words: next(iter(names)) for words, names in found.items() if len(names) == 1 and "_" in words}


def canonical(printed: str) -> Name:
    """Canonical name of a printed one: exact (case-blind), then without a `train/`-like prefix, else itself, unscaled.

    Last by its words, whatever stands between them: `Grad/norm` is `grad_norm`. The number of a device is left out:
    `gpu.3.memory.used` is looked up as `gpu.memory.used`.
    A prefix that names a split (`val`, `valid`, `validation`, `eval`, `test`) makes `loss` an `eval_loss`.
    """
    known = table()
    key = printed.strip().lower()
    if key in known:
        return known[key]
    if (device := _DEVICE.match(key)) is not None:
        return known.get(f"gpu.{key[device.end() :]}", Name(printed.strip()))
    head, _, last = key.replace(".", "/").rpartition("/")
    if last in known:
        split = head.split("/")[0]
        if split in {"val", "valid", "validation", "eval", "test"}:
            return Name(f"eval_{known[last].canonical}", known[last].scale)
        if split in {"train", "training", "optim", "actor", "perf", ""}:
            return known[last]
    return _by_words().get(_BETWEEN.sub("_", key).strip("_"), Name(printed.strip()))
