"""build-nanogpt's `log.txt`: a step, what was measured (`train`, `val` or `hella`) and one number on each line.

Steps count from 0. `train` is the loss of that optimizer step, summed over its micro-batches and averaged over ranks;
`val` is the validation loss, every 250 steps; `hella` is the accuracy on HellaSwag as a share. The file is emptied at
each start, so it holds one attempt. NaN is printed and the run goes on.

Example:
    ```log
    250 val 6.1250
    250 hella 0.2450
    250 train 6.093750
    251 train nan
    ```
    => step=250 eval_loss=6.125
    => step=250 hellaswag_acc=0.245
    => step=250 loss=6.09375
    => step=251 loss=nan

Not this:
    ```log
    250 train samples
    epoch 250 train 6.093750
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N

DIALECT = Dialect(
    name="build_nanogpt",
    title="build-nanogpt (log.txt)",
    lines=(
        Line("metrics", " train ", rf"^(?P<step>\d+) train (?P<loss>{N})$"),
        Line("metrics", " val ", rf"^(?P<step>\d+) val (?P<eval_loss>{N})$"),
        Line("metrics", " hella ", rf"^(?P<step>\d+) hella (?P<hellaswag_acc>{N})$"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
