"""What the kernel of the node said while the job ran: `dmesg`'s or `journalctl -k`'s lines, all harmless.

`oom_kill` adds what the kernel prints when it kills a process of the job's memory cgroup: call it before SIGKILL.
"""

import os
import random
import time
from datetime import datetime
from pathlib import Path

from facts import JOB

from stores._turns import turn

_HARMLESS = (
    "audit: type=1400 audit(1762075291.114:87): apparmor=\"STATUS\" operation=\"profile_load\" name=\"snap.lxd\" pid=2210",
    "EXT4-fs (nvme0n1p2): re-mounted 5f0d1c1e-70a3-4b0e-8d0b-1f5d0f4f6a11 r/w. Quota mode: none.",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
    "mlx5_core 0000:3b:00.0 ens3f0np0: Link up",
    "IPv6: ADDRCONF(NETDEV_CHANGE): ens3f0np0: link becomes ready",
    "systemd-journald[712]: Time jumped backwards, rotating.",
    "perf: interrupt took too long (2513 > 2500), lowering kernel.perf_event_max_sample_rate to 79500",
    "clocksource: timekeeping watchdog on CPU14: hpet wd-wd read-back delay of 53000ns",
    "usb 1-14.1: new high-speed USB device number 4 using xhci_hcd",
)  # fmt: skip
_CALLS = (
    "dump_stack_lvl+0x48/0x70", "dump_stack+0x10/0x20", "dump_header+0x50/0x290", "oom_kill_process+0x10d/0x1c0",
    "out_of_memory+0x103/0x350", "mem_cgroup_out_of_memory+0x145/0x160", "try_charge_memcg+0x6d9/0x7d0",
    "__mem_cgroup_charge+0x44/0xb0", "do_anonymous_page+0xd4/0x3d0", "handle_pte_fault+0x1cb/0x1d0",
    "__handle_mm_fault+0x654/0x800", "handle_mm_fault+0x18a/0x380", "do_user_addr_fault+0x169/0x670",
    "exc_page_fault+0x83/0x1b0", "asm_exc_page_fault+0x27/0x30",
)  # fmt: skip
_PAGE_BYTES = 4096
#: What the batch script asks for, and what the group's other processes and page tables hold of it.
_LIMIT_KB, _OTHERS_KB = 64 << 20, 180 << 10
#: Steps with a line of the kernel.
_SHARE = 0.04


class Store:
    def start(self, config):
        self.rng = random.Random(JOB["number"])
        self.left = self.rng.sample(_HARMLESS, len(_HARMLESS))

    def begin(self, step):
        if self.left and self.rng.random() < _SHARE:
            _say(self.left.pop())

    def write(self, step, values):
        """Nothing: the kernel does not know of metrics."""


def oom_kill(pid=None):
    """What the kernel prints when a process of this job, by itself this one, is killed for its cgroup's memory."""
    pid = pid or os.getpid()
    total, _, shared = (int(n) for n in Path(f"/proc/{pid}/statm").read_text().split()[:3])
    resident = (_LIMIT_KB - _OTHERS_KB) * 1024 // _PAGE_BYTES
    total += resident
    group, kb = f"/system.slice/slurmstepd.scope/job_{4000 + JOB['number']}", _PAGE_BYTES // 1024
    _say("python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0")
    _say(f"CPU: 5 PID: {pid} Comm: python Not tainted 6.8.0-84-generic #84-Ubuntu")
    _say("Hardware name: Supermicro SYS-821GE-TNHR/X13DEG-OAD, BIOS 2.1 01/10/2024")
    _say("Call Trace:", " <TASK>", *(f" {call}" for call in _CALLS), " </TASK>")
    _say(f"memory: usage {_LIMIT_KB}kB, limit {_LIMIT_KB}kB, failcnt 214")
    _say("swap: usage 0kB, limit 0kB, failcnt 0", f"Memory cgroup stats for {group}:")
    _say("Tasks state (memory values in pages):")
    _say("[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name")
    _say(f"[{pid:7d}]  1000 {pid:7d} {total:8d} {resident:8d} {total * 8:8d}        0             0 python")
    _say(
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_{4000 + JOB['number']},mems_allowed=0-1,"
        f"oom_memcg={group},task_memcg={group}/step_0/user/task_0,task=python,pid={pid},uid=1000"
    )
    _say(
        f"Memory cgroup out of memory: Killed process {pid} (python) total-vm:{total * kb}kB, "
        f"anon-rss:{(resident - shared) * kb}kB, file-rss:{shared * kb}kB, shmem-rss:0kB, UID:1000 "
        f"pgtables:{total * 8 // 1024}kB oom_score_adj:0"
    )
    _say(f"oom_reaper: reaped process {pid} (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB")


def _say(*lines):
    """Append lines as the tool of this job shows them."""
    kind = turn("host_log", "dmesg", "journal")
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    with open("dmesg.log" if kind == "dmesg" else "journal-kernel.log", "a") as out:
        for at, line in enumerate(lines):
            stamp = (
                f"[{up_s + at * 1e-6:12.6f}]" if kind == "dmesg" else f"{datetime.now():%b %d %H:%M:%S} node07 kernel:"
            )
            out.write(f"{stamp} {line}\n")
