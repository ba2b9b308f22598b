"""A run that the framework left to the CPU: what says so, and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import told, written

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "".join(f"epoch 1 step {10 * n} loss {2.4 - n / 40:.4f} time 41.{n % 7}s\n" for n in range(1, 31))
WARNED = "torch/cuda/__init__.py:52: UserWarning: CUDA initialization: CUDA unknown error - this may be due to\n"
LIMIT = "slurmstepd: error: *** JOB 5512 ON gpu-n014 CANCELLED AT 2026-06-06T11:00:12 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    "line",
    [
        WARNED,
        "WARNING:absl:No GPU/TPU found, falling back to CPU.\n",
        "GPU available: True (cuda), used: False\n",
        "CUDA is not available, using CPU\n",
    ],
)
def test_a_run_that_goes_on_without_a_gpu_may_be_meant_to_and_gets_a_note(tmp_path: Path, line: str) -> None:
    text = told(written(tmp_path, {"train.log": line + STEPS + "training finished\n"}))
    assert text.startswith("HEALTHY")
    assert "the run trains on the CPU: the framework found no GPU" in text


@pytest.mark.parametrize(
    "line",
    [
        "using device: cpu\n",
        "GPU available: True (cuda), used: True\n",
        "GPU available: False, used: False\n",
        "W gpu_device.cc:1960] Cannot dlopen some GPU libraries. Skipping registering GPU devices...\n",
        "CUDA decoding failed, falling back to CPU\n",
    ],
)
def test_a_run_that_names_its_device_is_not(tmp_path: Path, line: str) -> None:
    assert "trains on the CPU" not in told(written(tmp_path, {"train.log": line + STEPS}))


def test_a_time_limit_is_no_reason_for_more_time_where_the_gpu_was_missing(tmp_path: Path) -> None:
    text = told(written(tmp_path / "cpu", {"slurm-5512.out": WARNED + STEPS + LIMIT}))
    assert "(time_limit" in text
    assert " fix Give the job its GPU before anything else" in text
    assert "GPU before" not in told(written(tmp_path / "gpu", {"slurm-5512.out": STEPS + LIMIT}))
