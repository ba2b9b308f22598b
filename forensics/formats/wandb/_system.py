"""System metrics of W&B: canonical names and units by what each generation of writers meant by a key.

A name says nothing about its unit: `memoryAllocated` is a percentage, `rssMB` are 1,048,576 bytes, and `cpu` was the
whole machine until 0.13.5 and is the process, divided by the number of cores, since (wandb, `sdk/internal/stats.py`,
`sdk/internal/system/assets/` and `core/pkg/monitor/`). The device stays in the raw name, so each one is a series.
"""

from __future__ import annotations

import re
from functools import lru_cache

from forensics.dialects.spec import Name

PREFIX = "system."
_MIB, _BYTES = 1 / 1024, 1 / 2**30
_WHOLE_MACHINE_BEFORE = (0, 13, 6)
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

_GPU = {
    "gpu": Name("gpu_util_pct"),
    "memory": Name("gpu_mem_controller_util_pct"),
    "memoryAllocated": Name("gpu_mem_used_pct"),
    "memoryAllocatedBytes": Name("gpu_mem_used_gib", _BYTES),
    "memoryUsed": Name("gpu_mem_used_gib", _BYTES),
    "temp": Name("gpu_temp_c"),
    "powerWatts": Name("gpu_power_w"),
    "powerPercent": Name("gpu_power_pct"),
    "enforcedPowerLimitWatts": Name("gpu_power_limit_w"),
    "freq": Name("gpu_clock_mhz"),
    "smClock": Name("gpu_sm_clock_mhz"),
    "graphicsClock": Name("gpu_graphics_clock_mhz"),
    "memoryClock": Name("gpu_mem_clock_mhz"),
    "correctedMemoryErrors": Name("gpu_ecc_corrected"),
    "unCorrectedMemoryErrors": Name("gpu_ecc_uncorrected"),
    "uncorrectedMemoryErrors": Name("gpu_ecc_uncorrected"),
    "fanSpeed": Name("gpu_fan_pct"),
    "encoderUtilization": Name("gpu_encoder_util_pct"),
}
_PLAIN = {
    "memory": Name("host_mem_used_pct"),
    "memory_percent": Name("host_mem_used_pct"),
    "memory.used_percent": Name("host_mem_used_pct"),
    "memory.used": Name("host_mem_used_gib", _BYTES),
    "swap.used": Name("host_swap_used_gib", _BYTES),
    "swap.used_percent": Name("host_swap_used_pct"),
    "proc.memory.availableMB": Name("host_mem_available_gib", _MIB),
    "proc.memory.rssMB": Name("process_rss_gib", _MIB),
    "proc.memory.percent": Name("process_mem_pct"),
    "proc.cpu.threads": Name("process_threads"),
    "disk": Name("disk_used_pct"),
    "disk.in": Name("disk_read_gib", _MIB),
    "disk.out": Name("disk_written_gib", _MIB),
    "network.sent": Name("network_sent_gib", _BYTES),
    "network.recv": Name("network_received_gib", _BYTES),
    "network.tcpRetransmits": Name("network_tcp_retransmits"),
    "cpu.avg_temp": Name("cpu_temp_c"),
    "cpu.powerWatts": Name("cpu_power_w"),
    "system.powerWatts": Name("host_power_w"),
}
_SHAPES = (
    (re.compile(r"cpu\.\d+\.cpu_percent"), Name("cpu_core_util_pct")),
    (re.compile(r"disk\.(?:[^.]*[/\\][^.]*)\.usagePercent"), Name("disk_used_pct")),
    (re.compile(r"disk\.(?:[^.]*[/\\][^.]*)\.usageGB"), Name("disk_used_gib")),
    (re.compile(r"disk\.[^/\\]+\.in"), Name("disk_read_gib", _MIB)),
    (re.compile(r"disk\.[^/\\]+\.out"), Name("disk_written_gib", _MIB)),
)
_DEVICE = re.compile(r"gpu\.(process\.)?\d+\.(\w+)")


@lru_cache(maxsize=4096)
def system_name(key: str, version: str = "") -> Name:
    """Canonical name and scale of a key of a stats record, or of an events file less its `system.`.

    `version` is the writer's, where it is known. A key that no known writer uses is `system.` and itself, as printed.
    """
    if key == "cpu":
        found = _VERSION.match(version)
        whole = found is not None and tuple(int(part or 0) for part in found.groups()) < _WHOLE_MACHINE_BEFORE
        return Name("host_cpu_util_pct" if whole else "process_cpu_pct")
    if (known := _PLAIN.get(key)) is not None:
        return known
    if (device := _DEVICE.fullmatch(key)) is not None and (known := _GPU.get(device[2])) is not None:
        return Name(known.canonical.replace("gpu_", "gpu_process_", 1), known.scale) if device[1] else known
    return next((name for shape, name in _SHAPES if shape.fullmatch(key)), Name(PREFIX + key))
