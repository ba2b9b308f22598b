"""Whose failure it was: who raised in a log of all, who was killed, and who stood still when the run was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Shape
from tests.unit.truth._runs import TRACEBACK, falling, judged, said

AGENT = "0309 04:11:{at}.125000 5501 torch/distributed/elastic/multiprocessing/api.py"
TAGGED = "04:10:00 INFO [rank 0] step {at} loss {loss:.3f}"
OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.21 GiB. GPU 3 has a total capacity of 39 GiB"
)


def failed(local_rank: int, code: int = 1) -> str:
    words = f"failed (exitcode: {code}) local_rank: {local_rank} (pid: 4413) of binary: /env/bin/python3"
    return f"E{AGENT.format(at='02')}:869] {words}"


@pytest.mark.parametrize(("tag", "exits", "culprit"), [("", [3], 3), ("[rank1]: ", [3], 1), ("", [], 0)])
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
