"""The log of a healthy host: what its kernel and its services say at boot and over weeks is no failure of a run."""

from __future__ import annotations

import pytest

from forensics.knowledge import errors
from forensics.knowledge.errors import ErrorLine

BOOT = """
[    0.000000] Linux version 6.8.0-40-generic (buildd@mill) #40-Ubuntu SMP PREEMPT_DYNAMIC
[    0.000000] Command line: BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro crashkernel=512M panic=10
[    0.011021] BERT: Boot Error Record Table, total size 32 bytes
[    0.311233] mce: CPU0: Thermal monitoring enabled (TM1)
[    0.388120] MCE: In-kernel MCE decoding enabled.
[    0.402911] ERST: Error Record Serialization Table (ERST) support is initialized.
[    0.404417] GHES: APEI firmware first mode is enabled by APEI bit and WHEA _OSC.
[    1.112233] pcieport 0000:00:01.0: AER: enabled with IRQ 34
[    1.250118] rcu: Hierarchical RCU implementation.
[    1.300000] Memory: 1056329132K/1073741824K available
[    2.018822] nvme nvme0: 64/0/0 default/read/poll queues
[    2.118822] EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: errors=remount-ro
[    2.200118] EXT4-fs (nvme0n1p2): re-mounted r/w. Quota mode: none.
[    2.310000] XFS (nvme1n1): Mounting V5 Filesystem
[    2.318822] XFS (nvme1n1): Ending clean mount
[    3.100231] EDAC MC: Ver: 3.0.0
[    3.100531] EDAC MC0: Giving out device to module skx_edac controller Socket#0 IMC#0: DEV 0000:3a:0a.0
[    3.100831] EDAC skx: ECC enabled on all channels
[    4.118231] systemd-journald[611]: Received SIGTERM from PID 1 (systemd).
[    5.011882] mlx5_core 0000:1a:00.0: firmware version: 28.39.1002
[    5.012882] mlx5_core 0000:1a:00.0: 252.048 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x8 link)
[    5.212882] mlx5_core 0000:1a:00.0: Port module event: module 0, Cable plugged
[    5.312882] mlx5_core 0000:1a:00.0: mlx5_pcie_event:301:(pid 9): Detected insufficient power on the PCIe slot (27W).
[    6.412882] mlx5_core 0000:1a:00.0 ens1f0np0: Link up
[    6.512882] mlx5_core 0000:1a:00.1 ens1f1np1: Link down
[    7.100000] [drm] amdgpu kernel modesetting enabled.
[    7.210000] amdgpu 0000:c3:00.0: amdgpu: GPU reset method: mode1
[    7.310000] amdgpu 0000:c3:00.0: amdgpu: SMU is initialized successfully!
[    7.410000] amdgpu 0000:c3:00.0: amdgpu: ring gfx uses VM inv eng 0 on hub 0
[    8.100000] nvidia: loading out-of-tree module taints kernel.
[    8.200000] nvidia-nvlink: Nvlink Core is being initialized, major device number 510
[    8.300000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15
[    8.400000] nvidia-nvswitch0: SXid (PCI:0000:84:00.0): 0, no error is recorded
[    8.500000] nvidia-uvm: Loaded the UVM driver, major device number 511.
[    9.100000] watchdog: Delayed init of the lockup detector failed: -19
[    9.200000] NFS: Registering the id_resolver key type
[    9.300000] IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready
[   10.100000] random: crng init done
[   11.100000] systemd[1]: Mounted Kernel Debug File System.
"""
WEEKS = """
Nov 16 03:12:44 gpu-017 kernel: perf: interrupt took too long (2501 > 2500), lowering kernel.perf_event_max_sample_rate
Nov 16 04:12:44 gpu-017 kernel: EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)
Nov 16 05:12:44 gpu-017 kernel: mce: [Hardware Error]: Machine check events logged
Nov 16 05:12:45 gpu-017 kernel: [Hardware Error]: Corrected error, no action required.
Nov 16 05:12:46 gpu-017 kernel: {1}[Hardware Error]: event severity: corrected
Nov 16 06:12:44 gpu-017 kernel: mlx5_core 0000:1a:00.0: Port module event: module 0, Cable plugged
Nov 16 07:12:44 gpu-017 kernel: nfs: server filer1 OK
Nov 16 08:12:44 gpu-017 kernel: CPU12: Core temperature/speed normal (total events = 3)
Nov 16 09:12:44 gpu-017 kernel: audit: backlog limit exceeded
Nov 16 10:12:44 gpu-017 kernel: docker0: port 1(veth12) entered disabled state
Nov 16 11:12:44 gpu-017 kernel: TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.
Nov 16 12:12:44 gpu-017 kernel: pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0
Nov 16 13:12:44 gpu-017 kernel: EXT4-fs (nvme0n1p2): error count since last fsck: 0
Nov 16 14:12:44 gpu-017 systemd[1]: Stopping User Manager for UID 1001...
Nov 16 14:12:45 gpu-017 systemd[9911]: Received SIGRTMIN+24 from PID 1 (systemd).
Nov 16 15:12:44 gpu-017 sshd[4411]: Received signal 15; terminating.
Nov 16 16:12:44 gpu-017 rsyslogd[912]: [origin software="rsyslogd"] rsyslogd was HUPed
Nov 16 17:12:44 gpu-017 nvidia-persistenced[1201]: Received signal 15
Nov 16 18:12:44 gpu-017 kernel: amdgpu 0000:c3:00.0: amdgpu: GPU reset(1) succeeded!
"""
FAULTS = """
[844212.118240] NVRM: Xid (PCI:0000:9d:00): 79, pid=88231, name=python3, GPU has fallen off the bus.
[844212.118240] EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0
[844212.118240] mlx5_core 0000:1a:00.0: device's health compromised - reached miss count
[844212.118240] mlx5_core 0000:1a:00.0 ens1f0np0: Link down
[844212.118240] amdgpu 0000:c3:00.0: amdgpu: GPU reset begin!
[844212.118240] EXT4-fs (nvme0n1p2): Remounting filesystem read-only
"""


def told(text: str) -> list[ErrorLine]:
    """Rows that call a line an error or a fault of the host; one that calls it harmless goes before them."""
    near = [row for row in errors.lines() if any(needle in text for needle in row.needles)]
    hits = [(row, hit) for row in near if (hit := row.compiled.search(text)) is not None]
    if any(row.kind == "benign" for row, _ in hits):
        return []
    return [row for row, hit in hits if row.is_error or (row.clue is not None and row.clue.holds(hit))]


@pytest.mark.parametrize("line", (BOOT + WEEKS).strip().splitlines())
def test_a_healthy_host_tells_of_no_fault(line: str) -> None:
    assert [row.id for row in told(line)] == []


@pytest.mark.parametrize("line", FAULTS.strip().splitlines())
def test_a_fault_of_the_host_is_told_as_one(line: str) -> None:
    assert {row.id for row in told(line)} & errors.of_host()
