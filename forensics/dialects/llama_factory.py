"""LLaMA-Factory: JSON rows in `trainer_log.jsonl`, and the Trainer's dict behind `>>` in `running_log.txt`.

The JSON rows carry their step (`current_steps`) and total; an evaluation repeats the step with eval_loss and no loss.
throughput is tokens per second since the start, an average that hides a slowdown; vram_* is the peak of the process
in GiB; elapsed and remaining times are text. The Trainer's NaN filter applies, and the JSON rows have no grad_norm to
betray it; a NaN that gets through is a bare NaN, which is not JSON. The dicts have no step: header and epoch give it,
else unknown.

Example:
    ```log
    {"current_steps": 40, "total_steps": 900, "loss": 0.7712, "lr": 3.2e-05, "epoch": 0.13, "percentage": 4.44, "elapsed_time": "0:02:10", "remaining_time": "0:46:35", "throughput": 2511.3, "total_tokens": 326469}
    {"current_steps": 40, "total_steps": 900, "eval_loss": NaN, "epoch": 0.13, "percentage": 4.44, "elapsed_time": "0:02:40"}
    ```
    => loss=0.7712 lr=3.2e-05 tokens_per_sec_avg=2511.3 num_tokens=326469 step=40
    => eval_loss=nan step=40

Example:
    ```log
    [INFO|2025-03-04 05:06:07] logging.py:143 >> {'loss': 0.6120, 'learning_rate': 2.0000e-05, 'epoch': 1.25}
    [INFO|2025-03-04 05:06:17] trainer.py:3801 >> Saving model checkpoint to saves/demo/lora/checkpoint-300
    ```
    => loss=0.612 lr=2e-05 step=none
    => saved step=300 path=saves/demo/lora/checkpoint-300

Not this:
    ```log
    {"current_steps": "many", "total_steps": 900}
    [INFO|2025-03-04 05:06:07] logging.py:143 >> {'loss_type': None}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects._hf import SHARED, fill_step, number
from forensics.dialects.spec import Dialect, Line, Name

_NAMES: dict[str, Name | None] = {
    "throughput": Name("tokens_per_sec_avg"),
    "total_tokens": Name("num_tokens"),
    "vram_allocated": Name("mem_peak_gib"),
    "vram_reserved": Name("mem_reserved_peak_gib"),
    "epoch": None,
    "percentage": None,
    "elapsed_time": None,
    "remaining_time": None,
}

DIALECT = Dialect(
    name="llama_factory",
    title="LLaMA-Factory",
    lines=(
        Line(
            "metrics",
            '{"current_steps": ',
            r'\{"current_steps": (?P<step>\d+), "total_steps": (?P<max_steps>\d+), (?P<tail>.*)\}',
            tail="json",
            names=_NAMES,
        ),
        Line(
            "metrics",
            ">> {'loss': ",
            rf">> \{{'loss': {number('loss')}(?:, 'grad_norm': {number('grad_norm')})?"
            rf"(?:, 'learning_rate': {number('lr')})?.*'epoch': {number('epoch')}",
        ),
        *SHARED,
    ),
    finish=fill_step,
    hides_nan=True,
    metric_rank="first",
    doc=__doc__ or "",
)
