"""DeepSpeed engine: overflow messages, skipped-step counts, throughput and memory lines of any trainer above it.

An overflow is a non-finite gradient: the update is skipped and the weights are safe. A handful of them in the first
twenty steps finds the loss scale; a scale that reaches its floor, or a share of skips above some per cent later, is a
dead run. The overflow line has no step of its own and takes that of the line before. `skipped=` counts since the
start. GB is GiB; RunningAvgSamplesPerSec is an average since the start, CurrSamplesPerSec is not.

Example:
    ```log
    [2025-07-08 09:10:11,120] [INFO] [logging.py:96:log_dist] [Rank 0] step=60, skipped=4, lr=[0.0002, 0.0002], mom=[(0.9, 0.98), (0.9, 0.98)]
    [2025-07-08 09:10:12,450] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 2048, reducing to 1024
    ```
    => skipped_steps_total=4 lr=0.0002 step=60
    => loss_scale=2048 loss_scale_next=1024 step=60
    => event deepspeed.overflow step=60

Example:
    ```log
    [2025-07-08 09:12:00,000] [INFO] [timer.py:258:stop] epoch=0/micro_step=480/global_step=120, RunningAvgSamplesPerSec=20.5, CurrSamplesPerSec=19.8, MemAllocated=6.25GB, MaxMemAllocated=11.5GB
    [2025-07-08 09:12:01,000] [INFO] [utils.py:800:see_memory_usage] MA 6.25 GB         Max_MA 11.5 GB         CA 12.75 GB         Max_CA 13 GB
    ```
    => samples_per_sec_avg=20.5 samples_per_sec=19.8 mem_allocated_gib=6.25 mem_peak_gib=11.5 step=120
    => mem_allocated_gib=6.25 mem_peak_gib=11.5 mem_reserved_gib=12.75 mem_reserved_peak_gib=13 step=120

Example:
    ```log
    [2025-07-08 09:13:00,000] [INFO] [torch_checkpoint_engine.py:23:commit] [Torch] Checkpoint global_step120 is ready now!
    ```
    => committed step=120 path=global_step120

Not this:
    ```log
    [2025-07-08 09:10:12,450] [INFO] [config.py:752:print]   skipped_overflow ........ OVERFLOW
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N

DIALECT = Dialect(
    name="deepspeed",
    title="DeepSpeed engine",
    lines=(
        Line(
            "metrics",
            ", skipped=",
            rf"step=(?P<step>\d+), skipped=(?P<skipped_steps_total>\d+), lr=\[(?P<lr>{N})",
        ),
        Line(
            "metrics",
            "CurrSamplesPerSec=",
            rf"epoch=(?P<epoch>\d+)/micro_step=\d+/global_step=(?P<step>\d+), "
            rf"RunningAvgSamplesPerSec=(?P<samples_per_sec_avg>{N}), CurrSamplesPerSec=(?P<samples_per_sec>{N})"
            rf"(?:, MemAllocated=(?P<mem_allocated_gib>{N})GB, MaxMemAllocated=(?P<mem_peak_gib>{N})GB)?",
        ),
        Line(
            "metrics",
            " GB         Max_CA ",
            rf"MA (?P<mem_allocated_gib>{N}) GB\s+Max_MA (?P<mem_peak_gib>{N}) GB\s+CA (?P<mem_reserved_gib>{N}) GB"
            rf"\s+Max_CA (?P<mem_reserved_peak_gib>{N}) GB",
            carry=True,
        ),
        Line(
            "metrics",
            "Attempted loss scale: ",
            rf"Attempted loss scale: (?P<loss_scale>{N})(?:,? reducing to (?P<loss_scale_next>{N}))?",
            carry=True,
        ),
        Line("overflow", "OVERFLOW! ", r"OVERFLOW! (?:Rank (?P<rank>\d+) )?Skipping step", carry=True),
        Line("overflow", "Current loss scale already at minimum", "Current loss scale already at minimum", carry=True),
        Line(
            "saved",
            "Saving model checkpoint: ",
            r"Saving model checkpoint: (?P<path>\S*global_step(?P<step>\d+)/mp_rank_00\S*)",
        ),
        Line(
            "committed",
            "is ready now!",
            r"Checkpoint (?P<path>\S*global_step(?P<step>\d+)|\S+) is ready now!",
        ),
        Line(
            "resumed",
            "Loading checkpoint from ",
            r"Loading checkpoint from (?P<path>\S*global_step(?P<step>\d+)[^.\s]*)",
        ),
    ),
    sniff=(
        r"\[(?:INFO|WARNING)\] \[(?:logging|utils|config|engine|distributed|timer|stage\w+|loss_scaler)\.py:\d+:\w+\] ",
        r"OVERFLOW! (?:Rank \d+ )?Skipping step",
        r"step=\d+, skipped=\d+, lr=\[",
    ),
    skips_update_on_nan=True,
    metric_rank="first",
    doc=__doc__ or "",
)
