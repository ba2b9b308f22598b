"""MosaicML Composer and llm-foundry: a head `[batch=N/M]:`, then one tab-indented `Train name: value` line for each metric.

A batch is an optimizer update, from 1; the head counts epochs, batches, samples or tokens, as the run's duration
does, and only batches give a step. Memory is in GB of 10⁹ bytes, rates are both total and per device, mfu is a
fraction. NaN is printed; the NaN monitor, if on, raises instead. The step of a wrapped record is that of the head
above it.

Example:
    ```log
    [batch=40/900]:
         Train time/batch: 39
         Train loss/train/total: 6.1250
         Train lr-DecoupledAdamW/group0: 0.0002
         Train l2_norm/grad/global: 0.9100
         Train throughput/tokens_per_sec: 51200.0
         Train throughput/device/mfu: 0.4100
         Train memory/peak_allocated_mem: 21.4748
         Eval metrics/eval/LanguageCrossEntropy: 6.0500
    ```
    => loss=6.125 step=40
    => lr=0.0002 step=40
    => grad_norm=0.91 step=40
    => tokens_per_sec=51200 step=40
    => mfu=0.41 step=40
    => mem_peak_gib=19.99999 step=40
    => eval_loss=6.05 step=40

Example:
    ```log
    [epoch=2/3][batch=10/50]:
         Train loss/train/total: nan
    ```
    => loss=nan step=60

Example:
    ```log
    RuntimeError: Train loss contains a NaN.
    ```
    => event composer.nan step=none

Not this:
    ```log
    [batch=40/900]: evaluating
         Train dataset: c4
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

import polars as pl

from forensics.dialects.spec import Dialect, Line, N, Name

_GB = 1e9 / 2**30
_NAMES: dict[str, Name | None] = {
    "loss/train/total": Name("loss"),
    "l2_norm/grad/global": Name("grad_norm"),
    "throughput/tokens_per_sec": Name("tokens_per_sec"),
    "throughput/device/tokens_per_sec": Name("tokens_per_sec_per_device"),
    "throughput/batches_per_sec": Name("steps_per_sec"),
    "throughput/device/mfu": Name("mfu"),
    "memory/current_allocated_mem": Name("mem_allocated_gib", _GB),
    "memory/current_active_mem": Name("mem_active_gib", _GB),
    "memory/current_reserved_mem": Name("mem_reserved_gib", _GB),
    "memory/peak_allocated_mem": Name("mem_peak_gib", _GB),
    "memory/peak_active_mem": Name("mem_active_peak_gib", _GB),
    "memory/peak_reserved_mem": Name("mem_reserved_peak_gib", _GB),
    "memory/alloc_retries": Name("alloc_retries"),
    "metrics/eval/LanguageCrossEntropy": Name("eval_loss"),
    "metrics/eval/CrossEntropy": Name("eval_loss"),
    **{
        f"lr-{kind}/group0": Name("lr")
        for kind in ("DecoupledAdamW", "AdamW", "Adam", "SGD", "DecoupledLionW", "DecoupledSGDW")
    },
    **{f"time/{what}": None for what in ("epoch", "iteration", "batch", "sample", "token", "batch_in_epoch")},
    **{f"time/{what}_in_epoch": None for what in ("sample", "token")},
    **{f"time/{what}_in_iteration": None for what in ("epoch", "batch", "sample", "token")},
}


def _step_of_head(frame: pl.DataFrame) -> pl.DataFrame:
    """The head's batch, counted on over epochs where it starts again in each, for every line under it."""
    head = pl.col("meaning") == "progress"
    counted = (pl.col("epoch").cast(pl.Int64) - 1) * pl.col("iters") + pl.col("iter")
    frame = frame.with_columns(_own=pl.when(head).then(pl.coalesce("step", counted, pl.lit(-1))).forward_fill())
    under = pl.when(pl.col("_own") >= 0).then(pl.col("_own"))
    return frame.with_columns(
        step=pl.when(pl.col("meaning").is_in(["metrics", "progress"])).then(under).otherwise(pl.col("step"))
    ).drop("_own")


DIALECT = Dialect(
    name="composer",
    title="MosaicML Composer, llm-foundry",
    lines=(
        Line("progress", "[batch=", r"^\[batch=(?P<step>\d+)(?:/(?P<max_steps>\d+))?\]:?\s*$"),
        Line(
            "progress",
            "[epoch=",
            r"^\[epoch=(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\]\[batch=(?P<iter>\d+)(?:/(?P<iters>\d+))?\]:?\s*$",
        ),
        Line("progress", "]:", r"^\[(?:token|sample|iteration|tok|sp)=\d+(?:/(?P<max_steps>\d+))?\]:?\s*$"),
        Line("metrics", " Train ", rf"^\s+Train (?P<tail>[A-Za-z_][\w./%-]*: {N})\s*$", tail="colon", names=_NAMES),
        Line("metrics", " Eval ", rf"^\s+Eval (?P<tail>[A-Za-z_][\w./%-]*: {N})\s*$", tail="colon", names=_NAMES),
        Line("nan", " contains a NaN.", r"Train loss(?: \S+)? contains a NaN\."),
        Line("saved", "Saving checkpoint to ", r"Saving checkpoint to (?P<path>\S*ep\d+-ba(?P<step>\d+)\S*?)\.{0,3}$"),
        Line("ended", "Training finished", r"\bTraining finished\b"),
    ),
    sniff=(
        r"^\[(?:batch|epoch|token|sample)=\d+(?:/\d+)?\](?:\[batch=\d+(?:/\d+)?\])?:$",
        r"^\s+Train loss/train/total: ",
    ),
    finish=_step_of_head,
    metric_rank="first",
    doc=__doc__ or "",
)
