r"""Keras and TensorFlow `fit`: `Epoch E/M`, then `i/N … - loss: … - metric: …`, redrawn in place.

The bar's time per step is a clock. The loss is the running mean of the epoch: a NaN stays in it to
the end of the epoch and hides from which batch it came; `val_loss` is printed on the last frame. The step is (E - 1)
* N + i. Where no frame stands inside of an epoch (`verbose=2`), the step is the epoch, by which Keras's own callbacks
name files and rows. A frame without an `Epoch` line above it has no step. TerminateOnNaN names the batch and stops the
run.

Example:
    ```log
    Epoch 2/5
     60/400 [===>..........................] - ETA: 4:02 - loss: 1.2500 - accuracy: 0.7500
    400/400 ━━━━━━━━━━━━━━━━━━━━ 5s 12ms/step - accuracy: 0.8750 - loss: 0.6250 - val_loss: 0.7500
    ```
    => step=460 loss=1.25 accuracy=0.75
    => step=800 loss=0.625 accuracy=0.875 eval_loss=0.75

Example:
    ```log
    Epoch 1/5
    8/8 - 1s - 75ms/step - loss: nan - mae: nan
    Epoch 1: val_loss improved from 1.50000 to 1.25000, saving model to out/k_01.keras
    Batch 3: Invalid loss, terminating training
    ```
    => step=1 loss=nan mae=nan
    => saved step=1 path=out/k_01.keras
    => event keras.nan step=1

Not this:
    ```log
    10/100 files checked - mismatches: 3
    ```
"""

from __future__ import annotations

import polars as pl

from forensics.dialects._epochs import epoch_is_step, global_step
from forensics.dialects.spec import Dialect, Line


def _count(frame: pl.DataFrame) -> pl.DataFrame:
    """Count batches where bars show them, else epochs."""
    inside = (frame["meaning"] == "metrics") & (frame["iter"] < frame["iters"])
    return global_step(frame, first=1) if inside.any() else epoch_is_step(frame)


DIALECT = Dialect(
    name="keras",
    title="Keras / TensorFlow fit",
    lines=(
        Line("progress", "Epoch ", r"^Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\s*$"),
        Line(
            "metrics",
            "loss: ",
            r"^\s*(?P<iter>\d+)/(?P<iters>\d+) (?:\[[=>.]*\]|[━ ]+|-).*?"
            r"- (?P<tail>(?:[A-Za-z_]\w*: .*)?\bloss: .+)$",
            tail="colon",
            names={"ETA": None},
        ),
        Line("saved", ": saving model to ", r"^Epoch (?P<epoch>\d+): saving model to (?P<path>\S+)"),
        Line("saved", ", saving model to ", r"^Epoch (?P<epoch>\d+): .*, saving model to (?P<path>\S+)"),
        Line(
            "committed", ": finished saving model to ", r"^Epoch (?P<epoch>\d+): finished saving model to (?P<path>\S+)"
        ),
        Line("nan", ": Invalid loss, terminating training", r"Batch \d+: Invalid loss, terminating training"),
    ),
    finish=_count,
    doc=__doc__ or "",
)
