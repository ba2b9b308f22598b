"""Colossal-AI (Coati, ColossalChat): a progress bar per epoch with `loss=…` behind it.

Seconds per iteration are the bar's own mean; the loss is of one batch. Batches start again with each epoch, and
epochs count from 0 or 1 by script, so the step is (epoch - first) * batches + batch. NaN is printed as `nan`.

Example:
    ```log
    Epoch [1/3]:  10%|#         | 20/200 [01:40<15:00,  5.00s/it, loss=2.3750, lr=1e-05]
    Epoch [2/3]:  10%|#         | 20/200 [01:40<15:00,  5.00s/it, loss=nan, lr=1e-05]
    ```
    => step=20 loss=2.375 lr=0.00001
    => step=220 loss=nan

Example:
    ```log
    Train step of epoch 0:  50%|#####     | 5/10 [00:10<00:10,  2.00s/it, dist=0.125, acc=0.75]
    ```
    => step=5 dist=0.125 acc=0.75

Not this:
    ```log
    Epoch [1/3]:  10%|#         | 20/200 [01:40<15:00,  5.00s/it]
    ```
"""

from __future__ import annotations

from forensics.dialects._epochs import global_step
from forensics.dialects.spec import Dialect, Line

_BAR = r"\s+\d+%\|[^|]*\|\s*(?P<iter>\d+)/(?P<iters>\d+) \[[^\]=]*?, (?P<tail>[A-Za-z_]\w*=[^\]]+)"

DIALECT = Dialect(
    name="colossal",
    title="Colossal-AI (Coati)",
    lines=(
        Line("metrics", "oss=", rf"Epoch(?:: ?| \[)(?P<epoch>\d+)(?:/(?P<epochs>\d+)\])?:{_BAR}", tail="eq"),
        Line("metrics", "Train step of epoch ", rf"Train step of epoch (?P<epoch>\d+):{_BAR}", tail="eq"),
    ),
    finish=global_step,
    doc=__doc__ or "",
)
