"""MetricLogger (torchvision references, DETR, DINO, MAE, Swin): `Epoch: [E]  [ i/N]  eta: …  loss: median (mean)`.

Each value is the median of a short window with the mean since the epoch began in brackets; the median is read. `time`
and `data` are seconds per iteration, `max mem` the peak in MiB. Epochs count from 0, batches from 0; the step is E *
N + i. These scripts stop with `Loss is nan, stopping training` and exit status 1; a NaN stays in the mean to the end
of the epoch.

Example:
    ```log
    Epoch: [1]  [ 20/300]  eta: 0:04:41  lr: 0.002500  loss: 1.7500 (2.2500)  time: 0.0625  data: 0.0250  max mem: 2048
    ```
    => step=320 lr=0.0025 loss=1.75 step_time_s=0.0625 data_time_s=0.025 mem_peak_gib=2

Example:
    ```log
    Epoch: [1]  [ 20/300]  eta: 0:04:41  loss: 1.7500 (2.2500)  time: 0.0625  data: 0.0250
    Loss is nan, stopping training
    ```
    => step=320 loss=1.75
    => event metric_logger.nan step=320

Not this:
    ```log
    Test:  [ 20/300]  eta: 0:04:41  model_time: 0.0250 (0.0260)  time: 0.0625  data: 0.0250
    ```
"""

from __future__ import annotations

from functools import partial

from forensics.dialects._epochs import global_step
from forensics.dialects.spec import Dialect, Line, Name

DIALECT = Dialect(
    name="metric_logger",
    title="MetricLogger (torchvision references, DETR, DINO, MAE)",
    lines=(
        Line(
            "metrics",
            "  eta: ",
            r"Epoch: \[(?P<epoch>\d+)\]\s+\[\s*(?P<iter>\d+)/(?P<iters>\d+)\]\s+"
            r"eta: (?:\d+ days?, )?[\d:]+\s+(?P<tail>[A-Za-z].+)$",
            tail="colon",
            names={
                "time": Name("step_time_s"),
                "data": Name("data_time_s"),
                "max mem": Name("mem_peak_gib", 1 / 1024),
            },
        ),
        Line("nan", ", stopping training", r"Loss is (?:nan|inf|-inf), stopping training"),
    ),
    finish=partial(global_step, first=0),
    doc=__doc__ or "",
)
