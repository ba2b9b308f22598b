"""How much memory the device and the host have, and how much of the device is not the framework's.

The size of a device comes from its own series (`total`), else from an out-of-memory message; that of the host from the
facts. What the context, the communicator and other processes hold comes from such a message, or from the device's used
memory beside what the framework reserved.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.analyses.memory.kinds import TOTALS, Meaning
from forensics.analyses.memory.oom_messages import oom_messages
from forensics.analyses.memory.shape import ABSURD
from forensics.case.series import metric_rows
from forensics.store.run import Run, derived

_GIB = 1 << 30
#: A CUDA context, cuBLAS workspaces and NCCL buffers take about this much of a device (PyTorch, CUDA semantics).
USUAL_OUTSIDE_GIB = (0.3, 1.5)
#: Totals further apart than this share are of different devices.
_ALIKE = 0.02
_PERCENT = 100.0
_USED = "gpu_mem_used_gib"


class Capacity(Struct, frozen=True):
    """Sizes in GiB, None when unknown; `outside` brackets what is not the framework's, `measured` says it was seen."""

    device: float | None = None
    host: float | None = None
    outside: tuple[float, float] = USUAL_OUTSIDE_GIB
    measured: bool = False

    def of(self, meaning: Meaning) -> float | None:
        """Give the size of what a series counts, in its unit."""
        if meaning.unit == "%":
            return _PERCENT
        return self.host if meaning.is_host else self.device

    def room(self, meaning: Meaning) -> tuple[float, float] | None:
        """Bracket the value at which a growing series meets its end, in its unit; None when the size is unknown."""
        size = self.of(meaning)
        if size is None or meaning.falls:
            return None
        if meaning.unit == "%" or meaning.quantity in {"used", "rss", "host_used"}:
            return 0.98 * size, size
        low, high = self.outside
        return size - high, size - low


@derived
def capacity_of(run: Run) -> Capacity:
    """Collect the sizes that a run tells."""
    totals = (
        metric_rows(run, pl.col("name").is_in(TOTALS)).filter(pl.col("value") > 0).select("value").collect()["value"]
    )
    messages = [m.sizes for m in oom_messages(run) if m.where == "device"]
    sizes = totals.to_list() or [m.capacity / _GIB for m in messages if m.capacity]
    device = max(sizes) if sizes and max(sizes) - min(sizes) <= _ALIKE * max(sizes) else None
    outside = [((m.outside or 0) + (m.others or 0)) / _GIB for m in messages if m.outside is not None]
    outside = outside or [one.gib for one in beside_reserved(run)]
    host = run.scan("facts").filter(pl.col("key").str.ends_with("memory_bytes")).collect()["value"].to_list()
    found = [float(v) / _GIB for v in host if v is not None and v.isdigit()]
    bracket = (min(outside), max(outside)) if outside else USUAL_OUTSIDE_GIB
    return Capacity(device, max(found) if found else None, bracket, bool(outside))


class Beside(Struct, frozen=True):
    """Device memory in use by the driver's count less what the framework reserved, in GiB.

    `used` and `reserved` are the source, the rank and the canonical name of the two metrics, taken at their highest.
    """

    used: tuple[str, int | None, str]
    reserved: tuple[str, int | None, str]
    gib: float


def beside_reserved(run: Run) -> tuple[Beside, ...]:
    """Where the driver's count and what is reserved are logged, under one name each: their difference.

    One source logs both; or each is in a source of its own, and there is one device and one process in all.
    """
    highest = (
        metric_rows(run, pl.col("name").is_in([_USED, "mem_reserved_gib", "mem_reserved_peak_gib"]))
        .filter(pl.col("value").is_finite() & (pl.col("value").abs() < ABSURD))
        .group_by("source", "rank", "name")
        .agg(pl.col("value").max(), pl.col("raw_name").n_unique().alias("names"))
        .collect()
    )
    if highest.is_empty():
        return ()
    used = highest.filter((pl.col("name") == _USED) & (pl.col("names") == 1))
    held = highest.filter(pl.col("name") != _USED).sort("value", "name").group_by("source", "rank").last()
    both = used.join(held, on=["source", "rank"], how="inner", coalesce=False, suffix="_held", nulls_equal=True)
    if both.is_empty() and highest["name"].eq(_USED).sum() == held.height == 1:
        both = used.join(held, how="cross", suffix="_held")
    found = both.filter(pl.col("value") >= pl.col("value_held")).sort("source", "rank")
    return tuple(
        Beside(
            (row["source"], row["rank"], row["name"]),
            (row["source_held"], row["rank_held"], row["name_held"]),
            row["value"] - row["value_held"],
        )
        for row in found.iter_rows(named=True)
    )
