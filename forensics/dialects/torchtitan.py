"""torchtitan: `step: N  loss: …` with fixed columns, colour codes unless they are off.

Step counts updates from 1; printed at step 1 and every `log_freq`. tps is per device, memory the maximum reserved
since the line before, in GiB, mfu a percentage or N/A; older versions print wps for tps and no tflops. NaN is printed
and the run goes on. With pipeline parallelism only ranks of the last stage have the loss, others print -1. Checkpoint
lines name no step: they take that of the last metric line.

Example:
    ```log
    [rank0]:[titan] 2025-04-05 06:07:08,900 - root - INFO - step: 20  loss:  5.42110  grad_norm:  0.7700  memory: 31.50GiB(39.80%)  tps: 6,789  tflops: 187.20  mfu: 18.93%
    [rank0]:[titan] 2025-04-05 06:07:09,100 - root - INFO - validate step: 20  loss:  5.3000  memory: 31.50GiB(39.80%)  tps: 9,100
    ```
    => loss=5.4211 grad_norm=0.77 mem_reserved_peak_gib=31.5 tokens_per_sec_per_device=6789 tflops_per_device=187.2 mfu=0.1893 step=20
    => eval_loss=5.3 step=20

Example:
    ```log
    [titan] 2024-09-10 11:12:13,140 - root - INFO - step: 30  loss:     nan  memory: 12.10GiB(15.20%)  wps: 900  mfu: 3.10%
    [titan] 2024-09-10 11:12:15,140 - root - INFO - Finished saving the checkpoint (or staging if async is enabled) in 2.75 seconds.
    ```
    => loss=nan tokens_per_sec_per_device=900 mfu=0.031 step=30
    => committed step=30

Example:
    ```log
    [titan] 2025-04-05 06:00:00,000 - root - INFO - Loading the checkpoint from outputs/checkpoint/step-400.
    ```
    => resumed step=400 path=outputs/checkpoint/step-400

Not this:
    ```log
    [titan] 2025-04-05 06:00:00,000 - root - INFO - step: size 20 loss: cross_entropy
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_MEMORY = rf"\s+memory:\s*(?P<mem_reserved_peak_gib>{N})GiB\([^)]*\)"
_TPS = rf"\s+(?:tps|wps):\s*(?P<tokens_per_sec_per_device>{N})"

DIALECT = Dialect(
    name="torchtitan",
    title="torchtitan",
    lines=(
        Line(
            "metrics",
            "GiB(",
            rf"(?:^|[-\]] )step:\s*(?P<step>\d+)\s+loss:\s*(?P<loss>{N})(?:\s+grad_norm:\s*(?P<grad_norm>{N}))?"
            rf"{_MEMORY}{_TPS}(?:\s+tflops:\s*(?P<tflops_per_device>{N}))?(?:\s+mfu:\s*(?:(?P<mfu_pct>{N})%|N/A))?",
            names={"mfu_pct": Name("mfu", 0.01)},
        ),
        Line("metrics", "validate step:", rf"validate step:\s*(?P<step>\d+)\s+loss:\s*(?P<eval_loss>{N})"),
        Line("saved", "Saving the checkpoint", r"Saving the checkpoint", carry=True),
        Line(
            "committed",
            "Finished saving the checkpoint",
            r"Finished saving the checkpoint.* in [\d.]+ seconds",
            carry=True,
        ),
        Line("resumed", "Loading the checkpoint from ", r"Loading the checkpoint from (?P<path>\S*step-(?P<step>\d+))"),
        Line("removed", "Checkpointer is deleting ", r"Checkpointer is deleting (?P<path>\S*step-(?P<step>\d+))"),
        Line("started", "Training starts at step ", r"Training starts at step (?P<step>\d+)"),
        Line("ended", "Training completed", r"(?:^|- )Training completed\s*$"),
    ),
    metric_rank="any",
    doc=__doc__ or "",
)
