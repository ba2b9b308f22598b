"""PyTorch Lightning: the tqdm bar with its postfix, and the Rich bar whose metrics stand on wrapped lines below it.

Metric names are the user's; `_step` and `_epoch` endings tell the last value from the mean of the epoch. The bar
counts batches of an epoch that is numbered from 0: step is taken as epoch x batches + batch, which is updates when
nothing is accumulated. NaN is printed and the run goes on, unless early stopping watches that metric and says it is
not finite. A checkpoint has a line only when its callback is verbose.

Example:
    ```log
    Epoch 2:  50%|█████     | 20/40 [00:05<00:05,  3.90it/s, v_num=3, train_loss=0.412, val_loss=0.530]
    ```
    => loss=0.412 eval_loss=0.53 step=100

Example:
    ```log
    Epoch 1/4  ━━━━━━━━━━━━━━━━ 30/30 0:00:09 • 0:00:00 3.21it/s v_num: 0.000
                                                                 train_loss: nan
                                                                 val_loss: 1.250
    ```
    => loss=nan step=60
    => eval_loss=1.25 step=60

Example:
    ```log
    Epoch 0/-2 ━━━━━━━━━━━━━━━━ 140/140 0:00:06 •        20.88it/s train_loss: nan
                                        0:00:00                    lr: 0.001
    ```
    => loss=nan step=140

Example:
    ```log
    Monitored metric val_loss = nan is not finite. Previous best value was 0.530. Signaling Trainer to stop.
    ```
    => event lightning.nan step=none

Example:
    ```log
    Epoch 2, global step 120: 'val_loss' reached 0.53000 (best 0.53000), saving model to '/data/lit/epoch=2-step=120.ckpt' as top 1
    Restoring states from the checkpoint path at /data/lit/epoch=2-step=120.ckpt
    ```
    => saved step=120 path=/data/lit/epoch=2-step=120.ckpt
    => resumed step=120 path=/data/lit/epoch=2-step=120.ckpt

Not this:
    ```log
    Validation DataLoader 0: 100%|██████████| 8/8 [00:00<00:00, 40.12it/s]
    train_loss: see the table
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

import polars as pl

from forensics.dialects.spec import Dialect, Line, N, Name

_NAMES: dict[str, Name | None] = {
    "v_num": None,
    "global_step": None,
    "s": None,
    "train_loss_step": Name("loss"),
    "loss_step": Name("loss"),
    "train_loss_epoch": Name("loss_epoch_avg"),
    "loss_epoch": Name("loss_epoch_avg"),
    "val_loss_epoch": Name("eval_loss"),
    "val_loss_step": Name("eval_loss_step"),
    "consumed_samples": Name("num_samples"),
}
_RICH = r"Epoch (?P<epoch>\d+)/(?P<epochs>-?\d+)\s+[━╸╺ ]+\s*(?P<iter>\d+)/(?P<iters>\d+) \S+ •"


def _count_batches(frame: pl.DataFrame) -> pl.DataFrame:
    """Batches seen so far, of the bar itself or, for wrapped metrics, of the bar above them."""
    derived = pl.col("epoch").cast(pl.Int64) * pl.col("iters") + pl.col("iter")
    metric = pl.col("meaning").is_in(["metrics", "progress"])
    own = pl.when(metric).then(pl.coalesce("step", derived)).otherwise(pl.col("step"))
    above = pl.when(metric).then(pl.coalesce("step", derived)).forward_fill()
    return frame.with_columns(step=pl.when(pl.col("meaning") == "metrics").then(pl.coalesce(own, above)).otherwise(own))


DIALECT = Dialect(
    name="lightning",
    title="PyTorch Lightning",
    lines=(
        Line(
            "metrics",
            "Epoch ",
            r"Epoch (?P<epoch>\d+):\s+\d+%\|[^|]*\|\s*(?P<iter>\d+)/(?P<iters>\d+) "
            r"\[[^,\]]*,[^,\]=]*(?P<tail>,[^\]]*=[^\]]*)\]",
            tail="eq",
            names=_NAMES,
        ),
        Line("metrics", " • ", _RICH + rf"\s+(?:[\d:-]+ )?\S+ (?P<tail>.*[\w/]: {N}.*)$", tail="colon", names=_NAMES),
        Line("progress", " • ", _RICH),
        Line(
            "metrics",
            "loss",
            rf"^ {{30,}}(?P<tail>(?:(?:train|val|valid|validation|test)[_/])?loss(?:_step|_epoch)?: {N})\s*$",
            tail="colon",
            names=_NAMES,
        ),
        Line("nan", " is not finite. Previous best", r"Monitored metric \S+ = \S+ is not finite\. Previous best value"),
        Line(
            "saved",
            ", global step ",
            r"Epoch \d+, global step (?P<step>\d+): .*saving model to '(?P<path>[^']+)'",
        ),
        Line(
            "resumed",
            "Restoring states from the checkpoint path at ",
            r"Restoring states from the checkpoint path at (?P<path>\S*epoch=\d+-step=(?P<step>\d+)\S*|\S+)",
        ),
        Line("ended", "`Trainer.fit` stopped: ", r"`Trainer\.fit` stopped: "),
    ),
    finish=_count_batches,
    metric_rank="first",
    doc=__doc__ or "",
)
