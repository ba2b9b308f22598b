"""What the last lines of a short log prove: a start that waits for others, a load that does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.model import Outcome, Shape
from tests.unit.truth._runs import TRACEBACK, judged, said, shape

JOINING = "Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/2"
FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB."
PACKAGES = "/opt/env/lib/python3.11/site-packages"


def test_a_log_that_ends_where_the_ranks_join_waits_for_one_that_did_not_come(tmp_path: Path) -> None:
    verdict = said(tmp_path, ["the mill starts", JOINING])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.HANG, "init_hang")
    assert verdict.headline.startswith("The run logged nothing after it began to join the others")


@pytest.mark.parametrize("beside", ["rank0.log", "train.log"])
def test_who_trains_has_met_all_others(tmp_path: Path, beside: str) -> None:
    steps = [f"step {step} loss {3 - step / 50:.3f}" for step in range(1, 50)]
    run = judged(tmp_path, {"rank1.log": ["the mill starts", JOINING], beside: steps})
    assert run.verdict.outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(
    ("file", "function", "first"),
    [
        (f"{PACKAGES}/torch/optim/optimizer.py", "load_state_dict", "Load the checkpoint on the host"),
        (f"{PACKAGES}/torch/serialization.py", "_load", "Load the checkpoint on the host"),
        ("/opt/mill/blade.py", "load_state_dict", "Load the weights in 4 or 8 bit"),
        ("/opt/mill/blade.py", "forward", "Halve the micro-batch"),
    ],
)
def test_memory_that_ends_while_a_checkpoint_is_loaded_asks_for_the_host(
    tmp_path: Path, file: str, function: str, first: str
) -> None:
    frames = [f'  File "{file}", line 4, in {function}', "    turn()"]
    verdict = said(tmp_path, [*TRACEBACK, *frames, FULL])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.OOM, "gpu_out_of_memory")
    assert verdict.actions[0].text.startswith(first)


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        ("AttributeError: 'NoneType' object has no attribute 'from_pretrained'", "module_missing"),
        ("AttributeError: 'NoneType' object has no attribute 'grind'", "uncaught_exception"),
        ("AttributeError: can't set attribute", "versions_apart"),
    ],
)
def test_an_attribute_says_by_its_name_who_lacks_it(tmp_path: Path, raised: str, cause: str) -> None:
    assert said(tmp_path, [*TRACEBACK, raised]).cause == cause


#: Lines at which a log ends that waits, and the cause.
WAITS = {
    "Using /home/me/.cache/torch_extensions/py311_cu121 as PyTorch extensions root...": "build_lock_held",
    "Server is not up yet. Retrying in 2.0 seconds...": "server_not_up",
    "wandb: Network error (ConnectTimeout), entering retry loop.": "tracker_unreachable",
    "srun: job 71 queued and waiting for resources": "waits_for_resources",
}


@pytest.mark.parametrize(("line", "cause"), WAITS.items(), ids=WAITS.values())
def test_a_log_that_ends_at_a_wait_is_told_what_it_waits_for(tmp_path: Path, line: str, cause: str) -> None:
    verdict = said(tmp_path, ["the mill starts", line])
    assert (*shape(verdict), verdict.cause) == (Outcome.FAILED, Shape.HANG, cause)


@pytest.mark.parametrize("line", WAITS, ids=WAITS.values())
@pytest.mark.parametrize("beside", ["rank0.log", "train.log"])
def test_a_wait_is_over_where_the_run_trains(tmp_path: Path, beside: str, line: str) -> None:
    steps = [f"step {step} loss {3 - step / 50:.3f}" for step in range(1, 50)]
    run = judged(tmp_path, {"rank1.log": ["the mill starts", line], beside: steps})
    assert run.verdict.outcome is Outcome.CANNOT_SAY
