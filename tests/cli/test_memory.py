"""`forensics memory`: a log or a run in, an answer and an exit code out; two give a diff."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Call

CREEP = "[step {step}] GPU mem: {used:.1f}GB allocated, {used:.1f}GB peak, {held:.1f}GB reserved / 40.0GB total (50%)"
DEATH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 40.00 GiB"
    " of which 12.00 MiB is free. Including non-PyTorch memory, this process has 39.50 GiB memory in use. Of the"
    " allocated memory 37.25 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated. If"
    " reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
)


def log(folder: Path, name: str, *, per_step: float, steps: int = 400, death: bool = False) -> Path:
    lines = [
        f"[rank 0] INFO     [step {step}] loss=2.5000 | lr=1.00e-04\n[rank 0] INFO     "
        + CREEP.format(step=step, used=20 + per_step * step, held=22 + per_step * step)
        for step in range(0, steps, 2)
    ]
    path = folder / f"{name}.log"
    path.write_text("\n".join([*lines, *([DEATH] if death else [])]) + "\n", encoding="utf-8")
    return path


def test_a_level_run_is_0_and_a_growing_one_is_1(call: Call, tmp_path: Path) -> None:
    level, growing = log(tmp_path, "level", per_step=0.0), log(tmp_path, "growing", per_step=0.025)
    assert call("memory", level).code == 0
    done = call("memory", growing)
    assert (done.code, done.out.split("  ")[0]) == (1, "GROWS")
    assert call("memory", growing, "--exit-zero").code == 0


def test_the_document_projects_the_step_at_which_the_device_is_full(call: Call, tmp_path: Path) -> None:
    found = call("memory", log(tmp_path, "growing", per_step=0.025), "--format", "json").document
    held = next(s for s in found["series"] if s["metric"] == "mem_reserved_gib")
    low, high = held["oom_step"]
    assert found["schema"] == "forensics.memory/1"
    # 40 GiB less 0.3 to 1.5 GiB, from 22 GiB by 0.025 GiB per step
    assert low == pytest.approx(660, abs=20)
    assert high == pytest.approx(708, abs=20)


def test_a_run_that_died_shows_the_numbers_of_its_last_message(call: Call, tmp_path: Path) -> None:
    done = call("memory", log(tmp_path, "dead", per_step=0.04, death=True), "-f", "json")
    (message,) = done.document["oom"]
    assert done.code == 1
    assert (message["tried_bytes"], message["free_bytes"]) == (96 << 20, 12 << 20)
    assert message["reserved_unallocated_bytes"] == 1 << 30
    assert message["step"] == 398
    assert message["reading"] == "fragmentation"


def test_a_creep_that_killed_the_run_is_an_error_of_triage(call: Call, tmp_path: Path) -> None:
    found = call("triage", log(tmp_path, "dead", per_step=0.04, death=True), "-f", "json").document
    said = {f["rule"]: f["severity"] for f in found["findings"]}
    assert found["verdict"]["shape"] == "oom"
    assert (said["OOM001"], said["OOM002"]) == ("error", "error")


def test_two_runs_give_a_diff_and_three_are_refused(call: Call, tmp_path: Path) -> None:
    level, growing = log(tmp_path, "level", per_step=0.0), log(tmp_path, "growing", per_step=0.025)
    assert "against" in call("memory", level, growing).out
    assert call("memory", level, growing, "-f", "json").document["diff"]["series"]
    assert call("memory", level, level, level).code == 2


def test_a_run_without_memory_cannot_be_judged(call: Call, nan_run: Path) -> None:
    assert call("memory", nan_run).code == 3
