"""Memory that ran out, or will: the phase, what to change for that phase, and how to see what holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ERROR = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of"
    " which 1.12 GiB is free. Including non-PyTorch memory, this process has 78.02 GiB memory in use. Of the allocated"
    " memory 75.31 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.\n"
)
YAML = "base_model: meta-llama/Llama-3-8B\nmicro_batch_size: 4\nsequence_len: 4096\n"
FORWARD = ("transformers/models/llama/modeling_llama.py", "forward")
#: Frames around the one that raised, by what the program was doing.
TRAINS, EVALUATES, LOADS = "training_step", "evaluation_loop", "from_pretrained"


def steps(count: int) -> str:
    return "".join(
        f"{{'loss': {2.5 - 0.01 * n:.4f}, 'grad_norm': 0.51, 'learning_rate': 0.0002, 'epoch': {n / 100}}}\n"
        for n in range(1, count + 1)
    )


def ran_out(during: str, raised: tuple[str, str] = FORWARD) -> str:
    frames = [("/app/train.py", "<module>"), ("transformers/trainer.py", during), raised]
    lines = "".join(f'  File "{path}", line 9, in {function}\n    call()\n' for path, function in frames)
    return f"Traceback (most recent call last):\n{lines}{ERROR}"


def page(folder: Path, log: str, config: str = "", **files: str) -> str:
    return told(written(folder, {"train.log": log, "config.yaml": YAML + config, **files}))


def test_an_evaluation_that_ran_out_is_not_answered_with_the_training_batch(tmp_path: Path) -> None:
    said = page(tmp_path, steps(50) + ran_out(EVALUATES))
    assert "The run ran out of GPU memory in an evaluation" in said
    assert "fix Wrap the evaluation in torch.no_grad()" in said
    assert "micro-batch" not in said


def test_an_evaluation_is_known_by_the_line_that_began_it(tmp_path: Path) -> None:
    said = page(tmp_path, steps(50) + "***** Running Evaluation *****\n  Num examples = 2000\n" + ran_out(TRAINS))
    assert "ran out of GPU memory in an evaluation" in said


def test_an_evaluation_that_training_followed_is_over(tmp_path: Path) -> None:
    trained = "[step 10] loss=2.41 | lr=0.1\n***** Running Evaluation *****\n[step 11] loss=2.40 | lr=0.1\n"
    said = page(tmp_path, trained + ran_out(TRAINS))
    assert "ran out of GPU memory in the forward pass" in said
    assert "fix Halve the micro-batch" in said


def test_a_forward_pass_that_ran_out_asks_for_a_smaller_batch_then_a_shorter_sequence(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out(TRAINS))
    assert "ran out of GPU memory in the forward pass" in said
    assert "fix Halve the micro-batch and double the accumulation steps" in said
    assert "then shorten the sequence (now micro_batch_size = 4, config.yaml:2)" in said
    assert "Turn activation checkpointing on" in said


@pytest.mark.parametrize(
    ("config", "asked"), [("bf16: false\n", True), ("bf16: false\nfp16: true\n", False), ("", False)]
)
def test_bf16_is_asked_for_where_the_run_trains_in_full_precision(tmp_path: Path, config: str, *, asked: bool) -> None:
    said = page(tmp_path, ran_out(TRAINS), config)
    assert ("Train in bf16: activations take half the memory" in said) is asked


def test_weights_that_do_not_fit_are_loaded_in_fewer_bits(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out("main", ("transformers/modeling_utils.py", LOADS)))
    assert "ran out of GPU memory while it loaded the model" in said
    assert "fix Load the weights in 4 or 8 bit, or train in fp8 (load_in_4bit, load_in_8bit, fp8)" in said
    assert "micro-batch" not in said


def test_weights_that_are_quantised_already_are_sharded(tmp_path: Path) -> None:
    said = page(tmp_path, ran_out("main", ("transformers/modeling_utils.py", LOADS)), "load_in_4bit: true\n")
    assert "fix Shard the weights over more devices" in said


def test_a_run_without_a_snapshot_is_told_how_to_take_one(tmp_path: Path) -> None:
    assert "axolotl writes a memory snapshot of the steps in profiler_steps" in page(tmp_path, ran_out(TRAINS))


def test_another_trainer_is_not_told_of_a_setting_of_axolotl(tmp_path: Path) -> None:
    said = told(written(tmp_path, {"train.log": ran_out(TRAINS)}))
    assert "torch.cuda.memory._record_memory_history()" in said
    assert "profiler_steps" not in said


def test_an_error_after_many_records_without_numbers_did_not_come_at_the_start(tmp_path: Path) -> None:
    late = report(written(tmp_path / "late", {"train.log": steps(50) + ran_out(TRAINS)}))
    early = report(written(tmp_path / "early", {"train.log": steps(1) + ran_out(TRAINS)}))
    assert "OOM006" not in {f.rule for f in late.findings}
    assert "OOM006" in {f.rule for f in early.findings}


def climbing(step: int) -> float:
    return 20 + 0.01 * step


def stairs(step: int) -> float:
    return 20 + 2.0 * (step // 500)


@pytest.mark.parametrize("held", [climbing, stairs])
def test_memory_that_grows_asks_for_a_snapshot_of_kempnerforge(tmp_path: Path, held: Callable[[int], float]) -> None:
    lines = (
        f"[step {n}] loss={3 - n / 2000:.4f} | gpu/allocated_gb={held(n):.2f} | gpu/peak_gb={held(n) + 9:.2f}\n"
        for n in range(10, 2500, 10)
    )
    said = told(written(tmp_path, {"train.log": "".join(lines)}))
    assert "Let DeviceMemoryMonitor write a snapshot: set its snapshot_step beyond step" in said


def test_memory_that_grows_at_each_step_is_answered_with_what_a_log_keeps(tmp_path: Path) -> None:
    lines = (f"step {n} | loss {3 - n / 2000:.4f} | gpu/allocated_gb {climbing(n):.2f}\n" for n in range(10, 2500, 10))
    said = told(written(tmp_path, {"train.log": "".join(lines)}))
    assert "(log loss.item() or loss.detach())" in said
    assert "torch.cuda.memory._record_memory_history()" in said
