r"""Ultralytics YOLO (v5 and later): a table row per epoch, redrawn as a progress bar.

The losses are running means of the epoch; `GPU_mem` is reserved memory in GB (10^9 bytes); the header above the rows
names the loss columns, and they differ by task, so only the first, the box loss, is taken as the loss. The step is
the epoch (from 1; YOLOv5: from 0), because results.csv and the checkpoints count epochs. A NaN makes newer releases
go back to last.pt up to three times and say so; EMA weights are saved with NaN turned to zero.

Example:
    ```log
          7/100      2.75G      1.125      2.250      1.375         12        640:  45%|####5     | 90/200 [00:20<00:25,  4.31it/s]
                     all        128        929      0.625      0.500      0.750      0.375
    ```
    => step=7 loss=1.125 loss_2=2.25 loss_3=1.375 mem_reserved_gib=2.561137
    => step=7 precision=0.625 recall=0.5 map50=0.75 map50_95=0.375

Example:
    ```log
          7/100      2.75G      1.125      2.250      1.375         12        640:  45%|####5     | 90/200 [00:20<00:25,  4.31it/s]
    WARNING Loss NaN/Inf detected (attempt 1/3), recovering from last.pt...
    ```
    => step=7 loss=1.125
    => event ultralytics.nan step=7

Not this:
    ```log
          Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects._epochs import epoch_is_step
from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="ultralytics",
    title="Ultralytics YOLO",
    lines=(
        Line(
            "metrics",
            "G    ",
            rf"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+(?P<GPU_mem>[\d.]+)G\s+(?P<box_loss>{N})\s+(?P<loss_2>{N})"
            rf"\s+(?P<loss_3>{N})(?:\s+(?P<loss_4>{N}))?(?:\s+(?P<loss_5>{N}))?\s+\d+\s+\d+:?\s",
            names={"box_loss": Name("loss"), "GPU_mem": Name("mem_reserved_gib", 1e9 / 2**30)},
        ),
        Line(
            "metrics",
            "  all  ",
            rf"^\s+all\s+\d+\s+\d+\s+(?P<precision>{N})\s+(?P<recall>{N})\s+(?P<map50>{N})\s+(?P<map50_95>{N})",
        ),
        Line("nan", " NaN/Inf detected (attempt ", r"(?:Loss|Fitness) NaN/Inf detected \(attempt \d"),
        Line("ended", " epochs completed in ", r"\d+ epochs completed in [\d.]+ hours"),
    ),
    finish=epoch_is_step,
    doc=__doc__ or "",
)
