"""Megatron-LM and Megatron-Bridge: one ` iteration N/ M | name: value | … |` line a logging window.

Iterations count attempted updates from 1, skipped ones too; the values are means over the window. Time is in ms (a
fork prints seconds and says so), throughput in TFLOP/s of one GPU, memory lines in MB of 1024² bytes or in GB. The
last rank prints. The column `lm loss` is printed only when its mean is above zero: a window whose every update was
skipped, or whose mean is NaN, has no such column, which is how a failure looks here; the loss scale falls first.
`number of nan iterations` counts only those that were not skipped. A checkpoint counts from `successfully saved`.

Example:
    ```log
     [2025-06-07 08:09:10] iteration      200/    8000 | consumed samples:        51200 | elapsed time per iteration (ms): 2210.5 | throughput per GPU (TFLOP/s/GPU): 301.7 | learning rate: 1.500000E-04 | global batch size:   256 | lm loss: 3.214000E+00 | loss scale: 1.0 | grad norm: 0.612 | number of skipped iterations:   0 | number of nan iterations:   0 |
    ```
    => loss=3.214 lr=0.00015 step_time_s=2.2105 grad_norm=0.612 loss_scale=1 num_samples=51200 skipped_steps=0 tflops_per_device=301.7 step=200

Example:
    ```log
     iteration       30/     900 | consumed samples:          240 | elapsed time per iteration (ms): 900.0 | learning rate: 0.000E+00 | global batch size:     8 | loss scale: 4096.0 | number of skipped iterations:  10 | number of nan iterations:   0 |
    [Rank 3] (after 30 iterations) memory (MB) | allocated: 2048.0 | max allocated: 4096.0 | reserved: 5120.0 | max reserved: 5120.0
    ```
    => lr=0 loss_scale=4096 skipped_steps=10 step=30
    => mem_allocated_gib=2 mem_peak_gib=4 mem_reserved_gib=5 mem_reserved_peak_gib=5 step=30

Example:
    ```log
     validation loss at iteration 400 on validation set | lm loss value: 3.100000E+00 | lm loss PPL: 2.219795E+01 |
      successfully saved checkpoint from iteration     400 to ckpt/gpt [ t 1/2, p 1/1 ]
      successfully loaded checkpoint from ckpt/gpt [ t 1/2, p 1/1 ] at iteration 400
    ```
    => eval_loss=3.1 eval_ppl=22.19795 step=400
    => committed step=400 path=ckpt/gpt
    => resumed step=400 path=ckpt/gpt

Example:
    ```log
    Unexpected result nan on rank 5 at iteration #77 invocation #1 (message='found NaN in local forward loss calculation')
    ```
    => event megatron.nan step=77

Not this:
    ```log
    time (ms) | forward-compute: 812.50 | backward-compute: 1400.10 | optimizer: 41.00
     iteration count 200/ 8000 reached
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_MEMORY = (
    r"\(after (?P<step>\d+) iterations\) memory \({unit}\) \| allocated: (?P<a>{n}) \| max allocated: (?P<b>{n})"
    r" \| reserved: (?P<c>{n}) \| max reserved: (?P<d>{n})"
)


def _memory(unit: str, scale: float) -> Line:
    pattern = _MEMORY.replace("{unit}", unit).replace("{n}", N)
    kinds = ("mem_allocated_gib", "mem_peak_gib", "mem_reserved_gib", "mem_reserved_peak_gib")
    names = {group: Name(kind, scale) for group, kind in zip("abcd", kinds, strict=True)}
    return Line("metrics", f"memory ({unit}) | allocated: ", r"(?:\[Rank (?P<rank>\d+)\] )?" + pattern, names=names)


DIALECT = Dialect(
    name="megatron",
    title="Megatron-LM, Megatron-Bridge",
    lines=(
        Line(
            "metrics",
            "elapsed time per iteration (",
            r"iteration\s+(?P<step>\d+)/\s*(?P<max_steps>\d+) \|(?P<tail>.*)",
            tail="colon",
            names={
                "throughput per GPU (TFLOP/s/GPU)": Name("tflops_per_device"),
                "TFLOPs": Name("tflops_per_device"),
                "global batch size": Name("global_batch_size"),
                "params norm": Name("param_norm"),
                "num zeros": Name("num_zeros"),
                "load_balancing_loss": Name("load_balancing_loss"),
            },
        ),
        _memory("MB", 1 / 1024),
        _memory("GB", 1.0),
        Line(
            "metrics",
            "| lm loss value: ",
            rf"validation loss at (?:iteration (?P<step>\d+))?.*\| lm loss value: (?P<eval_loss>{N})"
            rf"(?: \| lm loss PPL: (?P<eval_ppl>{N}))?",
            carry=True,
        ),
        Line(
            "saved",
            "saving checkpoint at iteration",
            r"saving checkpoint at iteration\s+(?P<step>\d+) to (?P<path>\S+)",
        ),
        Line(
            "committed",
            "successfully saved checkpoint ",
            r"successfully saved checkpoint (?:from|at) iteration\s+(?P<step>\d+)(?: (?:to|in) (?P<path>\S+))?",
        ),
        Line(
            "resumed",
            "successfully loaded checkpoint from ",
            r"successfully loaded checkpoint from (?P<path>\S+).* at iteration (?P<step>\d+)",
        ),
        Line(
            "nan",
            "Unexpected result ",
            r"Unexpected result (?i:nan|inf|-inf)\S* on rank (?P<rank>\d+) at iteration #(?P<step>\d+)",
        ),
        Line("started", "[before the start of training step]", r"\[before the start of training step\] datetime: "),
        Line("ended", "[after training is done]", r"\[after training is done\] datetime: "),
    ),
    loses_column=True,
    metric_rank="last",
    doc=__doc__ or "",
)
