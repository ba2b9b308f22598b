"""The meaning of a canonical name of a memory metric: device or host, owner, moment or peak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, convert

from forensics.io.tables import table_rows

Quantity = Literal[
    "allocated", "active", "reserved", "peak_allocated", "peak_active", "peak_reserved", "used", "free", "rss",
    "host_used", "host_available",
]  # fmt: skip
Unit = Literal["GiB", "%"]
#: Memory of tensors: a leak shows here, fragmentation in reserved memory alone.
OF_TENSORS = frozenset({"allocated", "active", "peak_allocated", "peak_active"})


class Meaning(Struct, frozen=True):
    """One kind of memory metric.

    `quantity`: allocated (tensors), active (with blocks that wait for a stream), reserved (held by the framework's
    allocator), the peak of each, used and free (of the whole device, by the driver), rss (one process on the host),
    host_used and host_available. `falls` says that less is worse.
    """

    quantity: Quantity
    unit: Unit = "GiB"
    falls: bool = False

    @property
    def is_host(self) -> bool:
        """Whether it is memory of the host, not of a device."""
        return self.quantity in {"rss", "host_used", "host_available"}

    @property
    def is_peak(self) -> bool:
        """Whether it is the largest value of some interval, or since the start."""
        return self.quantity.startswith("peak_")


#: The meaning of each canonical metric.
MEANINGS: Final[Mapping[str, Meaning]] = {
    name: convert({"quantity": quantity, "unit": unit, "falls": worse == "less"}, Meaning)
    for name, quantity, unit, worse, _ in table_rows("forensics.analyses.memory", "kinds.tsv")
}
#: Metrics that give the size of the device itself.
TOTALS = ("gpu_mem_total_gib", "mem_total_gib")
#: Two quantities whose difference is memory that the allocator holds and nobody uses, at one moment each.
GAPS: tuple[tuple[Quantity, Quantity], ...] = (
    ("allocated", "reserved"),
    ("peak_allocated", "peak_reserved"),
    ("peak_active", "peak_reserved"),
)
