"""What a canonical name of a memory metric counts: where, of whom, and whether at a moment or as a peak."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

Quantity = Literal[
    "allocated", "active", "reserved", "peak_allocated", "peak_active", "peak_reserved", "used", "free", "rss",
    "host_used", "host_available",
]  # fmt: skip
Unit = Literal["GiB", "%"]


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


MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        "mem_allocated_gib": Meaning("allocated"),
        "mem_active_gib": Meaning("active"),
        "mem_reserved_gib": Meaning("reserved"),
        "mem_peak_gib": Meaning("peak_allocated"),
        "mem_active_peak_gib": Meaning("peak_active"),
        "mem_reserved_peak_gib": Meaning("peak_reserved"),
        "gpu_mem_used_gib": Meaning("used"),
        "gpu_process_mem_used_gib": Meaning("used"),
        "gpu_mem_used_pct": Meaning("used", "%"),
        "gpu_process_mem_used_pct": Meaning("used", "%"),
        "gpu_mem_free_gib": Meaning("free", falls=True),
        "process_rss_gib": Meaning("rss"),
        "process_mem_pct": Meaning("rss", "%"),
        "host_mem_used_gib": Meaning("host_used"),
        "host_mem_used_pct": Meaning("host_used", "%"),
        "host_mem_available_gib": Meaning("host_available", falls=True),
    }
)
#: Metrics that give the size of the device itself.
TOTALS = ("gpu_mem_total_gib", "mem_total_gib")
#: Two quantities whose difference is memory that the allocator holds and nobody uses, at one moment each.
GAPS: tuple[tuple[Quantity, Quantity], ...] = (
    ("allocated", "reserved"),
    ("peak_allocated", "peak_reserved"),
    ("peak_active", "peak_reserved"),
)
