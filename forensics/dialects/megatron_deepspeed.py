"""Megatron-DeepSpeed (BLOOM): `steps: N loss: … iter time (s): … samples/sec: …`, beside Megatron's and DeepSpeed's own.

Seconds here, milliseconds on Megatron's line of the same step. Two or three lines tell of one step: they join on it.
Megatron's column of skipped iterations stays 0 while DeepSpeed skips, and its grad norm then repeats a stale number:
believe the cumulative `skipped=` of DeepSpeed's line. A skipped update leaves the weights as they were.

Example:
    ```log
    steps: 310 loss: 6.1250 iter time (s): 1.840 samples/sec: 17.391
    ```
    => loss=6.125 step_time_s=1.84 samples_per_sec=17.391 step=310

Not this:
    ```log
    steps: 310 of 1000 done, loss: see the board
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N

DIALECT = Dialect(
    name="megatron_deepspeed",
    title="Megatron-DeepSpeed (BLOOM)",
    lines=(
        Line(
            "metrics",
            "iter time (s): ",
            rf"steps: (?P<step>\d+) loss: +(?P<loss>{N}) iter time \(s\): +(?P<step_time_s>{N})"
            rf" samples/sec: +(?P<samples_per_sec>{N})",
        ),
    ),
    loses_column=True,
    skips_update_on_nan=True,
    metric_rank="last",
    doc=__doc__ or "",
)
