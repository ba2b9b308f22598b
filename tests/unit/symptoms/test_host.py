"""A device or a host that failed under a run: what its kernel log says leads, and whose it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.symptoms.kit import report, told, written

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "".join(
    f"[2025-11-20 08:00:{n:02}] INFO kempnerforge: [step {n}] loss={3 - n / 100:.4f} | tok/s=40000\n" for n in range(60)
)
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/train.py", line 99, in step\n    loss.backward()\n'
XID = "[Thu Nov 20 08:01:15 2025] NVRM: Xid (PCI:0000:1b:00): {}, pid=4182, name=python, {}\n"
LOST = XID.format(79, "GPU has fallen off the bus.")
FAULT = XID.format(31, "Ch 00000008, intr 10000000. MMU Fault")
ENDED = (
    "E1120 08:01:20.123000 881 torch/distributed/elastic/multiprocessing/api.py] failed (exitcode: -6) local_rank: 1"
    " (pid: 4182) of binary: /usr/bin/python\n"
)


def test_a_gpu_that_fell_off_the_bus_is_told_by_its_host_and_tested_before_it_comes_back(tmp_path: Path) -> None:
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
    page = told(written(tmp_path, {"train.log": STEPS + TRACEBACK + error, "dmesg.log": LOST}))
    assert "GPU fell off the bus (0000:1b:00), by the log of its host" in page
    assert "the driver or the kernel reported it" in page
    assert "dcgmi diag -r 3" in page


def test_the_process_of_the_line_names_the_rank(tmp_path: Path) -> None:
    said = report(written(tmp_path, {"train.log": STEPS + ENDED, "dmesg.log": LOST}))
    assert said.verdict.culprits == (1,)


def test_the_one_rank_that_failed_by_itself_had_the_device_of_a_line_without_its_process(tmp_path: Path) -> None:
    error = "[rank5]: torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    other = error.replace("rank5", "rank6")
    one = report(written(tmp_path / "one", {"train.log": STEPS + LOST + "[rank5]: " + TRACEBACK + error}))
    two = report(written(tmp_path / "two", {"train.log": STEPS + LOST + error + other}))
    assert one.verdict.culprits == (5,)
    assert two.verdict.culprits == ()


def test_a_fault_that_is_mostly_the_programs_is_not_told_as_one_of_the_device(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"train.log": STEPS, "dmesg.log": FAULT}))
    assert "by the log of its host" not in page
    assert "the error is the program's own" in page


def test_a_kernel_that_failed_without_a_host_log_asks_for_it(tmp_path: Path) -> None:
    error = "torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    page = told(written(tmp_path, {"train.log": STEPS + TRACEBACK + error}))
    assert "dmesg -T | grep -i xid" in page
