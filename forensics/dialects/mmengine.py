r"""MMEngine (mmdet 3, mmpretrain, mmseg 1 …) and mmcv 2.x runners: `Epoch(train) [E][i/N]` or `Epoch [E][i/N]`, then `key: value`.

`time` and `data_time` are seconds per iteration, averaged over the log interval (10 or 50 iterations); `memory` is
the peak in MiB. `grad_norm` is there only with clipping. The step is (epoch - 1) * N + i; iteration-based runs print
`Iter(train)` with the step itself. Validation lines count the validation loader, so they stand at the last training
step. NaN is printed as `nan`, per component: a finite `loss_rpn_*` beside `loss_cls: nan` names the head that broke
first. `Saving checkpoint at N epochs` is printed before the file `epoch_N.pth` is written.

Example:
    ```log
    2026/01/02 03:04:05 - mmengine - INFO - Epoch(train)  [2][ 150/400]  lr: 2.0000e-03  eta: 1 day, 2:03:04  time: 0.2500  data_time: 0.0150  memory: 4096  grad_norm: 6.5000  loss: 1.7500  loss_cls: 0.5000
    ```
    => step=550 lr=0.002 step_time_s=0.25 data_time_s=0.015 mem_peak_gib=4 grad_norm=6.5 loss=1.75 loss_cls=0.5

Example:
    ```log
    2024-05-06 07:08:09,012 - mmdet - INFO - Epoch [1][100/800]	lr: 5.000e-04, eta: 3:04:05, time: 0.375, data_time: 0.002, memory: 2048, loss_rpn_cls: 0.1250, loss: nan, grad_norm: nan
    ```
    => step=100 lr=0.0005 step_time_s=0.375 mem_peak_gib=2 loss_rpn_cls=0.125 loss=nan grad_norm=nan

Example:
    ```log
    2026/01/02 03:04:05 - mmengine - INFO - Iter(train) [  50/9000]  lr: 1.0000e-02  eta: 2:03:04  time: 0.5000  data_time: 0.0100  memory: 1024  loss: 2.2500
    2026/01/02 03:14:05 - mmengine - INFO - Saving checkpoint at 50 iterations
    2026/01/02 03:15:05 - mmengine - INFO - Iter(val) [625/625]    mIoU: 31.5000  data_time: 0.0011  time: 0.0202
    ```
    => step=50 loss=2.25 lr=0.01
    => saved step=50
    => step=50 mIoU=31.5

Not this:
    ```log
    2026/01/02 03:04:05 - mmengine - INFO - workflow: [('train', 1)], max: 12 epochs
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from functools import partial

from forensics.dialects._epochs import global_step
from forensics.dialects.spec import Dialect, Line, Name

_NAMES = {
    "time": Name("step_time_s"),
    "data_time": Name("data_time_s"),
    "memory": Name("mem_peak_gib", 1 / 1024),
    "eta": None,
}
_VAL = {**_NAMES, "time": None, "data_time": None, "memory": None, "loss": Name("eval_loss")}

DIALECT = Dialect(
    name="mmengine",
    title="MMEngine, mmcv (mmdet, mmseg, mmpretrain)",
    lines=(
        Line(
            "metrics",
            "Epoch(train)",
            r"Epoch\(train\)\s*\[(?P<epoch>\d+)\]\[\s*(?P<iter>\d+)/(?P<iters>\d+)\]\s+(?P<tail>.+)$",
            tail="colon",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "Epoch [",
            r"Epoch \[(?P<epoch>\d+)\]\[(?P<iter>\d+)/(?P<iters>\d+)\]\s+(?P<tail>lr: .+)$",
            tail="colon",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "Iter(train)",
            r"Iter\(train\)\s*\[\s*(?P<step>\d+)/(?P<max_steps>\d+)\]\s+(?P<tail>.+)$",
            tail="colon",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "Iter [",
            r"Iter \[(?P<step>\d+)/(?P<max_steps>\d+)\]\s+(?P<tail>lr: .+)$",
            tail="colon",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "(val)",
            r"(?:Epoch|Iter)\(val\)\s*(?:\[\d+\])?\[\s*\d+(?:/\d+)?\]\s+(?P<tail>[A-Za-z].+)$",
            tail="colon",
            names=_VAL,
        ),
        Line("saved", "Saving checkpoint at ", r"Saving checkpoint at (?P<epoch>\d+) epochs"),
        Line("saved", "Saving checkpoint at ", r"Saving checkpoint at (?P<step>\d+) iterations"),
        Line("resumed", "resumed epoch", r"resumed epoch: (?P<epoch>\d+), iter: (?P<step>\d+)"),
        Line("nan", "loss become infinite or NaN", r"loss become infinite or NaN"),
    ),
    sniff=(
        r"Epoch ?(?:\(train\)\s*)?\[\d+\]\[\s*\d+/\d+\]\s+(?:base_)?lr: ",
        r"Iter(?:\(train\)\s*| )\[\s*\d+/\d+\]\s+(?:base_)?lr: ",
    ),
    finish=partial(global_step, first=1),
    doc=__doc__ or "",
)
