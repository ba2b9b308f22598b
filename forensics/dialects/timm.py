"""timm `train.py`: `Train: E [ i/N ( p%)]  Loss: last (mean)`.

Seconds per batch and samples per second of all ranks; the value of the batch comes first, the running mean of the
epoch in brackets (some releases print the mean alone). Epochs and batches count from 0; the step is E * N + i. A NaN
stays in the running mean to the end of the epoch, so the value of the batch is the one read. A checkpoint is named by
its epoch.

Example:
    ```log
    Train: 1 [  50/200 ( 25%)]  Loss: 5.250 (5.500)  Time: 0.500s,  512.00/s  (0.625s,  409.60/s)  LR: 2.500e-04  Data: 0.012 (0.045)
    ```
    => step=250 loss=5.25 step_time_s=0.5 samples_per_sec=512 lr=0.00025

Example:
    ```log
    Train: 0 [ 199/200 (100%)]  Loss: 5.250 (5.500)  Time: 0.500s,  512.00/s  (0.625s,  409.60/s)  LR: 2.500e-04  Data: 0.012 (0.045)
    Test: [  48/48]  Time: 0.125 (0.250)  Loss:   1.250 ( 1.500)  Acc@1:  70.500 ( 68.250)  Acc@5:  90.125 ( 88.250)
     ('./out/run/checkpoint-0.pth.tar', 68.25)
    ```
    => step=199 loss=5.25
    => step=199 eval_loss=1.5 eval_acc1=68.25
    => saved step=200 path=./out/run/checkpoint-0.pth.tar

Example:
    ```log
    Train: 1 [ 199/200 (100%)]  Loss: 5.250 (5.500)  Time: 0.500s,  512.00/s  (0.625s,  409.60/s)  LR: 2.500e-04  Data: 0.012 (0.045)
    *** Best metric: 68.25 (epoch 1)
    ```
    => step=399 loss=5.25
    => event timm.ended step=399

Not this:
    ```log
    Train: starting with 200 batches per epoch, Loss: cross entropy
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from functools import partial

from forensics.dialects._epochs import global_step
from forensics.dialects.spec import Dialect, Line, N

DIALECT = Dialect(
    name="timm",
    title="timm train.py",
    lines=(
        Line(
            "metrics",
            "Train: ",
            rf"Train: (?P<epoch>\d+) \[\s*(?P<iter>\d+)/(?P<iters>\d+)\s+\(\s*\d+%\)\]\s+Loss:\s*(?P<loss>{N})"
            rf"(?:.*?Time:\s*(?P<step_time_s>{N})s,\s+(?P<samples_per_sec>{N})/s)?(?:.*?\bLR:\s*(?P<lr>{N}))?",
        ),
        Line(
            "metrics",
            "Acc@1: ",
            rf"Test.*?\[\s*\d+/\d+\].*?Loss:\s*{N} \(\s*(?P<eval_loss>{N})\).*?Acc@1:\s*{N} \(\s*(?P<eval_acc1>{N})\)",
        ),
        Line("progress", "Scheduled epochs: ", r"^Scheduled epochs: (?P<epochs>\d+)"),
        Line("ended", "*** Best metric: ", r"^\*\*\* Best metric: "),
        Line("saved", ".pth.tar'", r"\('(?P<path>[^']*checkpoint-(?P<epoch>\d+)\.pth\.tar)', "),
    ),
    finish=partial(global_step, first=0),
    doc=__doc__ or "",
)
