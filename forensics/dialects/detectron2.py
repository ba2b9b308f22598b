"""detectron2: `iter: N  total_loss: …` lines of `d2.utils.events`, every 20 iterations.

`time` is the median of 20 iterations in seconds, `max_mem` the peak in MiB (it says M), losses are medians of 20. The
iteration is counted from 0. On a NaN or infinite loss the trainer raises at once and names the iteration exactly; a
NaN in `bbox/APs` of an empty class is no failure and is not read. `model_NNNNNNN.pth` carries the iteration it was
written after.

Example:
    ```log
    [03/04 05:06:07 d2.utils.events]:  eta: 1 day, 2:03:04  iter: 139  total_loss: 2.125  loss_cls: 0.625  time: 0.2500  last_time: 0.2301  data_time: 0.0125  last_data_time: 0.0034   lr: 2.50e-04  max_mem: 5120M
    ```
    => step=139 loss=2.125 loss_cls=0.625 step_time_s=0.25 data_time_s=0.0125 lr=0.00025 mem_peak_gib=5

Example:
    ```log
    FloatingPointError: Loss became infinite or NaN at iteration=777!
    [03/04 05:16:07 fvcore.common.checkpoint]: Saving checkpoint to ./out/model_0000799.pth
    ```
    => event detectron2.nan step=777
    => saved step=799 path=./out/model_0000799.pth

Not this:
    ```log
    [03/04 05:06:07 d2.evaluation.testing]: copypaste: 37.9,58.0,nan
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

DIALECT = Dialect(
    name="detectron2",
    title="detectron2",
    lines=(
        Line(
            "metrics",
            " total_loss: ",
            r"\biter: (?P<step>\d+)\s+(?P<tail>total_loss: .+)$",
            tail="colon",
            names={
                "time": Name("step_time_s"),
                "last_time": None,
                "last_data_time": None,
                # the M of "5432M" is read as a million
                "max_mem": Name("mem_peak_gib", 1 / 1.024e9),
            },
        ),
        Line("nan", "became infinite or NaN at iteration=", r"infinite or NaN at iteration=(?P<step>\d+)"),
        Line("saved", "Saving checkpoint to ", r"Saving checkpoint to (?P<path>\S*model_(?P<step>\d{7})\.pth)"),
        Line("saved", "model_final.pth", r"Saving checkpoint to (?P<path>\S*model_final\.pth)", carry=True),
        Line("started", "Starting training from iteration ", r"Starting training from iteration (?P<step>\d+)"),
    ),
    doc=__doc__ or "",
)
