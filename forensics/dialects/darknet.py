r"""Darknet (YOLO v1 to v4): `step: loss, mean avg, rate rate, seconds seconds, images images`.

One line for each batch, numbered from 1; the mean is a running one with a weight of a tenth. Lines of single regions
(`Region 82 Avg IOU: -nan`) print NaN for a region without an object, in healthy runs too: they are not read.

Example:
    ```log
    0|yolo  |  512: 3.875, 4.125 avg, 0.00100 rate, 2.5 seconds, 32768 images
    Region 82 Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0.002, .5R: -nan, .75R: -nan,  count: 0
    0|yolo  |  513: -nan, -nan avg loss, 0.00100 rate, 2.5 seconds, 32832 images, 4.5 hours left
    ```
    => loss=3.875 running_loss=4.125 lr=0.001 step_time_s=2.5 num_samples=32768 step=512
    => loss=nan running_loss=nan lr=0.001 step_time_s=2.5 num_samples=32832 step=513

Not this:
    ```log
    Learning Rate: 0.001, Momentum: 0.9, Decay: 0.0005
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="darknet",
    title="Darknet",
    lines=(
        Line(
            "metrics",
            " rate, ",
            rf"(?:^|\s)(?P<step>\d+): (?P<loss>{N}), (?P<mean>{N}) avg(?: loss)?, (?P<lr>{N}) rate, "
            rf"(?P<step_time_s>{N}) seconds, (?P<num_samples>\d+) images",
            names={"mean": Name("running_loss")},
        ),
        Line("saved", "Saving weights to ", r"Saving weights to (?P<path>\S+?_(?P<step>\d+)\.weights|\S+)"),
    ),
    metric_rank="any",
    doc=__doc__ or "",
)
