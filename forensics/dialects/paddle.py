"""PaddleNLP: `loss: …, learning_rate: …, global_step: N, …` from its trainer.

Rates are of the interval since the last line (good for slowdowns), memory is in GiB, tokens per second of one device.
The step counts optimizer updates. NaN is printed as `nan`; the loss is averaged over the interval.

Example:
    ```log
    [2026-01-02 03:04:05,678] [    INFO] - loss: 2.375, learning_rate: 2.5e-05, global_step: 120, current_memory_allocated: 10.5, max_memory_allocated: 12.25, interval_runtime: 4.5, interval_samples_per_second: 28.5, interval_tokens_per_second_per_device: 3500.5, interval_steps_per_second: 2.5, progress_or_epoch: 0.05
    ```
    => step=120 loss=2.375 lr=0.000025 mem_allocated_gib=10.5 mem_peak_gib=12.25 samples_per_sec=28.5 tokens_per_sec_per_device=3500.5

Example:
    ```log
    [2026-01-02 03:04:05,678] [    INFO] - Saving model checkpoint to ./out/checkpoint-120
    ```
    => saved step=120 path=./out/checkpoint-120

Not this:
    ```log
    [2026-01-02 03:04:05,678] [    INFO] - learning_rate: 2.5e-05, max_steps: 500
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_NAMES = {
    "global_step": None,
    "progress_or_epoch": None,
    "current_memory_allocated": Name("mem_allocated_gib"),
    "max_memory_allocated": Name("mem_peak_gib"),
    "interval_samples_per_second": Name("samples_per_sec"),
    "interval_tokens_per_second_per_device": Name("tokens_per_sec_per_device"),
    "interval_steps_per_second": Name("steps_per_sec"),
}

DIALECT = Dialect(
    name="paddle",
    title="PaddleNLP",
    lines=(
        Line(
            "metrics",
            ", global_step: ",
            rf"(?P<tail>\bloss: {N}, .*?global_step: (?P<step>\d+).*)$",
            tail="colon",
            names=_NAMES,
        ),
        Line("metrics", "] - eval_loss: ", r"\] - (?P<tail>eval_loss: .+)$", tail="colon", names=_NAMES, carry=True),
        Line(
            "saved",
            "] - Saving model checkpoint to ",
            r"\] - Saving model checkpoint to (?P<path>\S*checkpoint-(?P<step>\d+))",
        ),
    ),
    sniff=(rf"\bloss: {N}, learning_rate: {N}, global_step: \d+",),
    doc=__doc__ or "",
)
