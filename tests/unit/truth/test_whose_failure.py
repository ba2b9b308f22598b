"""Whose failure it was: who raised in a log of all, who was killed, and who stood still when the run was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, falling, judged, said, shape

AGENT = "0309 04:11:{at}.125000 5501 torch/distributed/elastic/multiprocessing/api.py"
TAGGED = "04:10:00 INFO [rank 0] step {at} loss {loss:.3f}"
OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.21 GiB. GPU 3 has a total capacity of 39 GiB"
)


def failed(local_rank: int, code: int = 1) -> str:
    words = f"failed (exitcode: {code}) local_rank: {local_rank} (pid: 4413) of binary: /env/bin/python3"
    return f"E{AGENT.format(at='02')}:869] {words}"


@pytest.mark.parametrize(("tag", "exits", "culprit"), [("", [3], 3), ("[rank1]: ", [3], 1), ("", [], 0), ("", [0], 0)])
def test_an_untagged_traceback_is_of_the_worker_that_the_launcher_saw_fail(
    tag: str, exits: list[int], culprit: int, tmp_path: Path
) -> None:
    raised = [tag + line for line in (*TRACEBACK, OOM)]
    verdict = said(tmp_path, [*falling(1, 60, TAGGED), *raised, *map(failed, exits)])
    assert (verdict.shape, verdict.culprits) == (Shape.OOM, (culprit,))


def test_who_is_killed_with_a_host_that_fills_is_the_culprit(tmp_path: Path) -> None:
    memory = ["step,rss_mb", *(f"{at},{900 + 150 * at}" for at in range(5, 405, 5))]
    files = {"mem.csv": memory, "run.log": [*falling(1, 400), failed(2, -9)]}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.cause, verdict.culprits) == (Shape.OOM, "host_leak", (2,))


def stopped(asked: Sequence[int], forced: Sequence[int], line: str) -> list[str]:
    got = f"W{AGENT.format(at='59')}:753] Received 2 death signal, shutting down workers"
    sent = [f"W{AGENT.format(at='10')}:1028] Sending process {pid} closing signal SIGINT" for pid in asked]
    words = "Unable to shutdown process {} via 2, forcefully exiting via 9"
    return [*falling(1, 58, line), got, *sent, *(f"W{AGENT.format(at='40')}:1047] {words.format(p)}" for p in forced)]


def test_workers_that_do_not_react_to_a_stop_stood_still(tmp_path: Path) -> None:
    verdict = said(tmp_path, stopped((71, 72), (71, 72), "step {at} | loss: {loss:.4f}"))
    assert (*shape(verdict), verdict.onset.step, verdict.cause) == (Outcome.FAILED, Shape.HANG, 58, "silent_stall")


@pytest.mark.parametrize(
    ("asked", "forced", "line"),
    [
        ((71, 72), (), "step {at} | loss: {loss:.4f}"),
        ((71, 72, 73), (71, 72), "step {at} | loss: {loss:.4f}"),
        ((71,), (71,), "step {at} | loss: {loss:.4f}"),
        (
            (71, 72),
            (71, 72),
            "I0309 04:11:{at:02}.000000 71 fit.py:3] step {at} loss: {loss:.4f}",
        ),  # it trained till then
    ],
)
def test_a_stop_to_which_one_worker_reacted_is_a_stop(
    asked: Sequence[int], forced: Sequence[int], line: str, tmp_path: Path
) -> None:
    verdict = said(tmp_path, stopped(asked, forced, line))
    assert shape(verdict) == (Outcome.FAILED, Shape.STOPPED)


WAITS = "06:00:00 batch {at} of 12000 - loss {loss:.3f} - (waiting for data 2{at} s)"


@pytest.mark.parametrize(
    ("last", "shape_"), [([], None), (["06:02:00 still waiting for next batch (14s)"], Shape.HANG)]
)
def test_a_record_that_tells_of_its_wait_for_data_is_no_wait(
    last: list[str], shape_: Shape | None, tmp_path: Path
) -> None:
    assert said(tmp_path, [*falling(1, 60, WAITS), *last]).shape is shape_


def resumed(before: list[str], first: int) -> dict[str, list[str]]:
    again = falling(first, 400)
    return {"log.1": before, "log.2": [f"Resuming from checkpoint ck/step_{first - 1}.pt", *again, "training finished"]}


def saving(rise: float = 0.0) -> list[str]:
    lines = falling(1, 340)
    for at in range(300, 340):
        lines[at] = f"step {at + 1} | loss: {3.4 - at / 100 + rise * (at - 299):.4f}"
    for at in range(300, 0, -100):
        lines.insert(at, f"saved checkpoint ck/step_{at}.pt")
    return lines


@pytest.mark.parametrize(
    ("rise", "first", "told"),
    [
        (0.0, 101, True),  # those of steps 200 and 300 were passed over
        (0.0, 201, False),  # the one of step 300 may not have been whole
        (0.1, 101, False),  # the loss had risen: somebody went back on purpose
    ],
)
def test_a_restart_that_passes_over_newer_checkpoints_is_a_warning(
    rise: float, first: int, *, told: bool, tmp_path: Path
) -> None:
    report = judged(tmp_path, resumed(saving(rise), first))
    assert ("RSM009" in {finding.rule for finding in report.findings}) is told


XID = "[Tue Feb 18 17:18:08 2025] NVRM: Xid (PCI:0000:4e:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    ("kernel", "cause"),
    [([XID], "gpu_fell_off_the_bus"), (["[Tue Feb 18 17:18:08 2025] usb 1-1: disconnect"], "kernel_launch_failure")],
)
def test_the_log_of_the_host_knows_more_than_the_error_of_the_rank(
    kernel: list[str], cause: str, tmp_path: Path
) -> None:
    raised = [
        f"gpu03: [rank18]: {line}" for line in (*TRACEBACK, "RuntimeError: CUDA error: unspecified launch failure")
    ]
    lines = falling(1, 60, "gpu01: [2025-02-18 17:17:{at_}] [INFO] step {at} loss {loss:.4f}".replace("{at_}", "00"))
    files = {"run.log": [*lines, *raised], "dmesg.gpu03.txt": kernel}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.cause, verdict.culprits) == (Shape.CRASH, cause, (18,))


def test_a_launcher_that_tells_of_rank_0_alone_names_nobody_in_a_job_of_one(tmp_path: Path) -> None:
    lines = [
        *falling(1, 60),
        *TRACEBACK,
        "FileNotFoundError: [Errno 2] No such file: 'a'",
        "srun: error: n1: task 0: Exited with exit code 1",
    ]
    verdict = said(tmp_path, lines)
    assert (verdict.shape, verdict.culprits) == (Shape.CRASH, ())
