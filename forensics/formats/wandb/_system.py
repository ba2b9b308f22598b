"""System metrics of W&B: canonical names and units by what each generation of writers meant by a key.

A name says nothing about its unit: `memoryAllocated` is a percentage, `rssMB` are 1,048,576 bytes, and `cpu` was the
whole machine until 0.13.5 and is the process, divided by the number of cores, since (wandb, `sdk/internal/stats.py`,
`sdk/internal/system/assets/` and `core/pkg/monitor/`). The device stays in the raw name, so each one is a series.
"""

from __future__ import annotations

from functools import lru_cache

from forensics.dialects.spec import Name
from forensics.io.tables import named_rows
from forensics.patterns import lazily

PREFIX = "system."
_VERSION = lazily(r"(\d+)\.(\d+)(?:\.(\d+))?")
_IN_GIB = {"": 1.0, "MiB": 1 / 1024, "bytes": 1 / 2**30}
_WHOLE_MACHINE_BEFORE = (0, 13, 6)


def _names_of(place: str) -> dict[str, Name]:
    rows = named_rows("forensics.formats.wandb", "system.tsv")
    return {row["key"]: Name(row["name"], _IN_GIB[row["unit"]]) for row in rows if row["place"] == place}


_GPU, _HOST = _names_of("gpu"), _names_of("host")
_SHAPES = [(lazily(pattern), name) for pattern, name in _names_of("shape").items()]
_DEVICE = lazily(r"gpu\.(process\.)?\d+\.(\w+)")


def parts_of(version: str) -> tuple[int, ...] | None:
    """A version of the writer as three numbers; None for what is none."""
    found = _VERSION.match(version)
    return None if found is None else tuple(int(part or 0) for part in found.groups())


@lru_cache(maxsize=4096)
def system_name(key: str, version: str = "") -> Name:
    """Canonical name and scale of a key of a stats record, or of an events file less its `system.`.

    `version` is the writer's, where it is known. A key that no known writer uses is `system.` and itself, as printed.
    """
    if key == "cpu":
        whole = (known := parts_of(version)) is not None and known < _WHOLE_MACHINE_BEFORE
        return Name("host_cpu_util_pct" if whole else "process_cpu_pct")
    if (name := _HOST.get(key)) is not None:
        return name
    if (device := _DEVICE.fullmatch(key)) is not None and (name := _GPU.get(device[2])) is not None:
        return Name(name.canonical.replace("gpu_", "gpu_process_", 1), name.scale) if device[1] else name
    return next((name for shape, name in _SHAPES if shape.fullmatch(key)), Name(PREFIX + key))
