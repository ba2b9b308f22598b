"""NeMo 2 progress printer (`Training epoch E, iteration I/N | …`) and the bar of NeMo 1.

Times in seconds, numbers rounded to four digits and averaged over the logging interval, so that one NaN in the window
makes the printed mean NaN. iteration and global_step count from 0: one is added here, so that a step is a number of
updates made.

Example:
    ```log
    Training epoch 0, iteration 39/499 | lr: 0.00012 | global_batch_size: 64 | global_step: 39 | reduced_train_loss: 6.02 | train_step_timing in s: 1.375 | consumed_samples: 2560
    Training epoch 1, iteration 4/49 | lr: 0.0001 | reduced_train_loss: nan | val_loss: 5.9
    ```
    => loss=6.02 lr=0.00012 global_batch_size=64 step_time_s=1.375 num_samples=2560 step=40
    => loss=nan eval_loss=5.9 step=55

Example:
    ```log
    Epoch 0: :   2%|▏         | 20/1000 [00:44<36:11, v_num=0, reduced_train_loss=9.310, global_step=19.00, consumed_samples=160.0, train_step_timing in s=2.21]
    ```
    => loss=9.31 num_samples=160 step_time_s=2.21 step=20

Not this:
    ```log
    Training epoch 0 begins, iteration limit 500
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

import polars as pl

from forensics.dialects.spec import Dialect, Line, N, Name


def _count_iterations(frame: pl.DataFrame) -> pl.DataFrame:
    """Updates made where no global step is printed: iterations of the epochs before and of this one."""
    derived = pl.col("epoch").cast(pl.Int64) * (pl.col("iters") + 1) + pl.col("iter") + 1
    return frame.with_columns(step=pl.coalesce("step", derived))


DIALECT = Dialect(
    name="nemo",
    title="NeMo",
    lines=(
        Line(
            "metrics",
            "Training epoch ",
            rf"Training epoch (?P<epoch>\d+), iteration (?P<iter>\d+)/(?P<iters>\d+) \|(?: lr: (?P<lr>{N}) \|)?"
            rf"(?: global_batch_size: (?P<global_batch_size>{N}) \|)?"
            rf"(?: global_step: (?P<step>\d+)[\d.]* \|)?(?P<tail>.*)",
            tail="colon",
            names={"consumed_samples": Name("num_samples"), "global_step": None},
            step_offset=1,
        ),
        Line(
            "metrics",
            "Epoch ",
            rf"Epoch (?P<epoch>\d+): :.*reduced_train_loss=(?P<loss>{N}), global_step=(?P<step>\d+)(?:\.\d*)?"
            rf"(?:, consumed_samples=(?P<num_samples>{N}))?(?:, train_step_timing in s=(?P<step_time_s>{N}))?",
            step_offset=1,
        ),
    ),
    finish=_count_iterations,
    metric_rank="any",
    doc=__doc__ or "",
)
