"""Memory that grew until it was used up: the growth is the cause, and what asked for memory last is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.model import Shape
from tests.unit.truth._runs import TRACEBACK, falling, judged

OUT = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.25 GiB "
    "of which 306.25 MiB is free. Including non-PyTorch memory, this process has 78.94 GiB memory in use. Of the "
    "allocated memory 77.40 GiB is allocated by PyTorch, and 611.18 MiB is reserved by PyTorch but unallocated."
)


@pytest.mark.parametrize(("growth", "cause"), [(0.1, "leak_per_step"), (0.0, "gpu_out_of_memory")])
def test_the_growth_that_another_file_tells_is_why_memory_ran_out(growth: float, cause: str, tmp_path: Path) -> None:
    rows = [json.dumps({"step": at, "memory_allocated_gib": 30 + at * growth}) for at in range(480)]
    files = {"memory.jsonl": rows, "out.log": [*falling(1, 480, top=6.0), *TRACEBACK, OUT]}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.shape, verdict.cause) == (Shape.OOM, cause)


@pytest.mark.parametrize("stamp", ["2024-10-09 09:{:02}:00 ", "09:{:02}:00 ", ""])
def test_the_one_gpu_that_filled_is_why_its_rank_ran_out(stamp: str, tmp_path: Path) -> None:
    head = "timestamp, index, memory.used [MiB], memory.total [MiB]"
    rows = [
        f"2024/10/09 09:{at:02}:00.000, {gpu}, {31000 + at * 830 * (gpu == 0)} MiB, 81559 MiB"
        for at in range(60)
        for gpu in range(2)
    ]
    lines = [stamp.format(at) + line for at, line in enumerate(falling(1, 60, "INFO step {at} loss {loss:.3f}"))]
    files = {"gpu.csv": [head, *rows], "job.log": [*lines, *("[rank0]: " + line for line in (*TRACEBACK, OUT))]}
    verdict = judged(tmp_path, files).verdict
    assert (verdict.cause, verdict.culprits) == ("device_memory_grows", (0,))
