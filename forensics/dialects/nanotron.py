"""nanotron: `iteration: N / M | key: value | …` with three significant digits and K M G T P E suffixes.

Iteration time is in ms; tokens per second of all ranks and of one GPU. Three digits limit every slope: a step of
1,249 ms prints as 1.25K. Printed by the last pipeline stage. NaN prints as `nan`, and an infinite loss as `infE`.

Example:
    ```log
    01/02/2026 03:04:05 [INFO|DP=0|PP=0|TP=0|node-7]: iteration: 40 / 5000 | consumed_tokens: 41.5M | elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 830K | tokens_per_sec_per_gpu: 13.5K | global_batch_size: 1.02K | lm_loss: 2.75 | lr: 0.00025 | model_tflops_per_gpu: 180 | grad_norm: 0.375
    ```
    => step=40 num_tokens=41500000 step_time_s=1.25 tokens_per_sec=830000 tokens_per_sec_per_device=13500 loss=2.75 lr=0.00025 grad_norm=0.375

Example:
    ```log
    [INFO|DP=0|PP=0|TP=0]: iteration: 41 / 5000 | consumed_tokens: 42.5M | elapsed_time_per_iteration_ms: 812 | lm_loss: infE | lr: 0.00025 | grad_norm: nan
    [INFO|DP=0|PP=0|TP=0]: Saving checkpoint at checkpoints/41
    ```
    => step=41 step_time_s=0.812 loss=inf grad_norm=nan
    => saved step=41 path=checkpoints/41

Not this:
    ```log
    [INFO|DP=0|PP=0|TP=0]: iteration: 41 / 5000 is next
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line

DIALECT = Dialect(
    name="nanotron",
    title="nanotron",
    lines=(
        Line(
            "metrics",
            "| consumed_tokens: ",
            r"iteration: (?P<step>\d+) / (?P<max_steps>\d+) \| (?P<tail>.+)$",
            tail="colon",
            names={"eta": None},
        ),
        Line("saved", "Saving checkpoint at ", r"Saving checkpoint at (?P<path>\S*?(?P<step>\d+))$"),
    ),
    metric_rank="last",
    doc=__doc__ or "",
)
